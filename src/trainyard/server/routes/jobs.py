"""Jobs: hand them in, find them, see them, change them."""

from __future__ import annotations

import json
from collections.abc import Callable

from fastapi import APIRouter, Request

from trainyard.core.events import Event, JobCancelled, JobHeld, JobReleased
from trainyard.live.store import reading
from trainyard.server.body import read_object
from trainyard.server.desk import Desk
from trainyard.server.jobs import find, history, job_of, recent
from trainyard.server.reply import Reply
from trainyard.server.submission.values import flag
from trainyard.server.submitting import submit

MOST_ROWS = 1000


def routes(desk: Desk) -> APIRouter:
    """Return the paths below /jobs."""
    router = APIRouter()

    @router.get("/jobs")
    async def listed(
        all: int = 0, state: str = "", q: str = "", after: int | None = None, limit: int = 200
    ) -> Reply:
        limit = min(max(limit, 1), MOST_ROWS)
        if all:
            return Reply(await history(desk, state, q, after, limit))
        return Reply(await recent(desk, state, q, after or 0, limit))

    @router.post("/jobs")
    async def submitted(request: Request) -> Reply:
        made = await submit(desk, await read_object(request))
        return Reply(await job_of(desk, made.job_id), 201 if made.new else 200)

    @router.get("/jobs/find")
    async def found(name: str, user: str = "") -> Reply:
        return Reply({"jobs": await find(desk, name, user or desk.owner)})

    @router.get("/jobs/{job_id}")
    async def one(job_id: str) -> Reply:
        view = await job_of(desk, job_id)
        rows = await desk.read(lambda connection: reading.attempts_of(connection, job_id))
        attempts = [dict(row) | {"nodes": _nodes(row["nodes"])} for row in rows]
        return Reply(view | {"attempts": attempts, "checkpoint": desk.checkpoint(job_id)})

    @router.get("/jobs/{job_id}/story")
    async def story(job_id: str) -> Reply:
        await job_of(desk, job_id)
        rows = await desk.read(lambda connection: reading.story_of(connection, job_id))
        names = ("seq", "n", "time_s", "state", "text")
        return Reply({"story": [{name: row[name] for name in names} for row in rows]})

    @router.post("/jobs/{job_id}/cancel")
    async def cancel(job_id: str, request: Request) -> Reply:
        given = await read_object(request, ("now",))
        at_once = flag("now", given.get("now", False))
        text = f"cancelled by {desk.owner}"
        return await change(job_id, lambda now: JobCancelled(now, job_id, at_once, text))

    @router.post("/jobs/{job_id}/hold")
    async def hold(job_id: str, request: Request) -> Reply:
        await read_object(request, ())
        return await change(job_id, lambda now: JobHeld(now, job_id))

    @router.post("/jobs/{job_id}/release")
    async def release(job_id: str, request: Request) -> Reply:
        await read_object(request, ())
        return await change(job_id, lambda now: JobReleased(now, job_id))

    async def change(job_id: str, event: Callable[[float], Event]) -> Reply:
        await job_of(desk, job_id)
        await desk.tell(event, desk.owner)
        return Reply(await job_of(desk, job_id))

    return router


def _nodes(stored: str) -> dict[str, dict[str, float]]:
    """What an attempt had on each node, by name."""
    names = ("gpus", "servers", "cpus", "memory_gb")
    return {node: dict(zip(names, share, strict=True)) for node, share in json.loads(stored).items()}
