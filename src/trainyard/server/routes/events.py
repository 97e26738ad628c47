"""The stream of events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import StreamingResponse

from trainyard.server.desk import Desk
from trainyard.server.jobs import job_of
from trainyard.server.stream.feed import Feed
from trainyard.server.stream.topics import read_position, read_topics


def routes(desk: Desk) -> APIRouter:
    """Return /events."""
    router = APIRouter()

    @router.get("/events")
    async def events(
        after: str = "", topics: str = "", last_event_id: Annotated[str | None, Header()] = None
    ) -> StreamingResponse:
        wanted = read_topics(topics)
        views = {job_id: await job_of(desk, job_id) for job_id in wanted.named}
        feed = Feed(desk, wanted, views, read_position(last_event_id or after))
        return StreamingResponse(feed.events(), media_type="text/event-stream")

    return router
