"""What jobs printed."""

from __future__ import annotations

import json

from fastapi import APIRouter
from starlette.responses import Response

from trainyard.live.backends.base import RunKey
from trainyard.live.store.reading import attempts_of
from trainyard.server.desk import Desk
from trainyard.server.faults import FieldError, Refusal
from trainyard.server.jobs import job_of

LINES = 1000  # if nobody says how many
MOST_LINES = 1_000_000
MOST_BYTES = 4_000_000  # of one answer; the next one goes on where it ends
LATEST = "latest"


def routes(desk: Desk) -> APIRouter:
    """Return the paths of output."""
    router = APIRouter()

    @router.get("/jobs/{job_id}/logs")
    async def logs(
        job_id: str,
        rank: int = 0,
        attempt: str = LATEST,
        server: int = 0,
        lines: int | None = None,
        offset: int | None = None,
    ) -> Response:
        number = _attempt(attempt, job_id, (await job_of(desk, job_id))["attempt"])
        if rank < 0:
            raise FieldError("rank", f"{rank} does not fit; ranks count from 0")
        tail = None if offset is not None else min(max(LINES if lines is None else lines, 0), MOST_LINES)
        begin = max(offset or 0, 0)
        end, data = begin, bytearray()
        if number:
            pieces = desk.live.backend.logs(
                RunKey(job_id, number), rank, server=bool(server), offset=begin, lines=tail
            )
            async for after, piece in pieces:
                end = after
                data += piece
                if len(data) >= MOST_BYTES:
                    break
        if rank and not server and not data:
            await _look_for(desk, job_id, number, rank)
        headers = {"Trainyard-Offset": str(end), "Trainyard-Attempt": str(number)}
        return Response(bytes(data), media_type="text/plain; charset=utf-8", headers=headers)

    return router


async def _look_for(desk: Desk, job_id: str, attempt: int, rank: int) -> None:
    """Say so if an attempt has no such rank."""
    rows = await desk.read(lambda connection: attempts_of(connection, job_id))
    for row in rows:
        workers = sum(share[0] for share in json.loads(row["nodes"]).values())
        if row["attempt"] == attempt and rank >= workers:
            raise Refusal(
                404, f"attempt {attempt} of job {job_id} has {workers} workers, so there is no rank {rank}"
            )


def _attempt(text: str, job_id: str, latest: int) -> int:
    """Read which attempt is meant; 0 if there was none yet."""
    if text == LATEST:
        return latest
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not number:
        raise FieldError("attempt", f"'{text[:40]}' is no attempt; give a number from 1, or {LATEST}")
    if number > latest:
        raise Refusal(404, f"job {job_id} has had {latest} attempts, so there is no attempt {number}")
    return number
