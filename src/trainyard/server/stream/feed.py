"""One reader's stream: what changed, merged, not too often; and what belongs to the jobs it asked for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Connection

from trainyard.live.store import reading
from trainyard.live.views import View
from trainyard.server.answers import to_bytes
from trainyard.server.desk import Desk
from trainyard.server.stream.output import Output
from trainyard.server.stream.topics import Topics
from trainyard.state.lifecycle import WITH_PROCESSES

COMMENT = b": still here\n\n"


def framed(name: str, data: Any, identity: str = "") -> bytes:
    """Return one event as it goes over the wire."""
    head = f"id: {identity}\n" if identity else ""
    return f"{head}event: {name}\n".encode() + b"data: " + to_bytes(data) + b"\n\n"


class Feed:
    """What one reader is told."""

    def __init__(
        self, desk: Desk, topics: Topics, views: Mapping[str, View], after: tuple[int, int] | None
    ) -> None:
        """`views` are the jobs that it names; `after` the last event seen: an epoch and a version."""
        self._desk, self._topics, self._views, self._after = desk, topics, views, after
        self._published = desk.controller.published
        self._outputs = [(topic.job_id, Output(desk.live.backend, topic)) for topic in topics.logs]
        self._told: dict[str, tuple[int, int]] = {}  # how far stories were told
        self._version = self._published.version
        self._news = asyncio.Event()
        self._spoke = time.monotonic()

    async def events(self) -> AsyncIterator[bytes]:
        """Return events until the controller ends."""
        loop = asyncio.get_running_loop()

        def changed() -> None:  # in the controller's thread
            with contextlib.suppress(RuntimeError):  # the loop is closed: this is the end
                loop.call_soon_threadsafe(self._news.set)

        leave = self._published.listen(changed)
        try:
            async for piece in self._events():
                yield piece
                self._spoke = time.monotonic()
        finally:
            leave()

    async def _events(self) -> AsyncIterator[bytes]:
        for job_id, output in self._outputs:
            await output.place(self._view(job_id))
        yield self._first()
        async for piece in self._more(self._topics.jobs):
            yield piece
        while not self._desk.closing.is_set():
            await self._wait()
            async for piece in self._changes():
                yield piece
            if time.monotonic() - self._spoke >= self._desk.controller.settings.keep_alive_s:
                yield COMMENT
        async for piece in self._changes():  # what changed in the last moment
            yield piece
        yield framed("bye", self._desk.last_words)

    async def _changes(self) -> AsyncIterator[bytes]:
        """Return what changed; all output of a job comes before the news that it is over."""
        delta = self._delta()
        if delta is None:
            yield framed("reset", {}, self._here())
            changed = self._topics.jobs
        else:
            changed = self._topics.jobs.intersection(view["job_id"] for view in delta["jobs"])
        async for piece in self._more(changed):
            yield piece
        if delta is not None and (delta["jobs"] or "nodes" in delta):
            yield framed("delta", delta, self._here())
            await self._wait_for(self._desk.closing, self._desk.controller.settings.delta_s)

    def _first(self) -> bytes:
        """Say where the reader is now: what it missed, or that it has to load everything again."""
        if self._after is None:
            return framed("delta", self._frame(self._version, []), self._here())
        epoch, version = self._after
        known = epoch == self._published.epoch and self._published.after(version) is not None
        if not known:
            return framed("reset", {}, self._here())
        self._version = version
        delta = self._delta()
        return (
            framed("delta", delta, self._here()) if delta is not None else framed("reset", {}, self._here())
        )

    def _here(self) -> str:
        return f"{self._published.epoch}.{self._version}"

    def _delta(self) -> dict[str, Any] | None:
        """Return what changed since the last time, each job once; None if that is not known any more."""
        missed, before = self._published.after(self._version), self._version
        if missed is None:
            self._version = self._published.version
            return None
        if missed:
            self._version = missed[-1]["v"]
        jobs: dict[str, View] = {view["job_id"]: view for delta in missed for view in delta["jobs"]}
        delta = self._frame(before, [view for job, view in jobs.items() if self._topics.wants(job)])
        nodes = [delta["nodes"] for delta in missed if "nodes" in delta]
        if missed:
            delta["t"] = missed[-1]["t"]
        return delta | {"nodes": nodes[-1]} if nodes and self._topics.yard else delta

    def _frame(self, before: int, jobs: list[View]) -> dict[str, Any]:
        now = self._published.status.get("now_s")
        return {"after": before, "v": self._version, "t": now, "jobs": jobs}

    async def _more(self, changed: Iterable[str]) -> AsyncIterator[bytes]:
        """Return output, then what is new in the stories of jobs that changed."""
        for job_id, output in self._outputs:
            async for event in output.news(self._view(job_id)):
                yield framed("log", event)
        for job_id in changed:
            for row in await self._desk.read(partial(self._story, job_id)):
                yield framed("story", row)

    def _view(self, job_id: str) -> View:
        """A job as it is, or as it was if only the store knows it."""
        return self._published.job(job_id) or self._views[job_id]

    def _story(self, job_id: str, connection: Connection) -> list[Mapping[str, Any]]:
        since = self._told.get(job_id, (-1, -1))
        names = ("job_id", "seq", "n", "time_s", "state", "text")
        rows = [row for row in reading.story_of(connection, job_id) if (row["seq"], row["n"]) > since]
        if rows:
            self._told[job_id] = rows[-1]["seq"], rows[-1]["n"]
        return [{name: row[name] for name in names} for row in rows]

    # -- pace ----------------------------------------------------------------------

    async def _wait(self) -> None:
        """Wait for news, for more output, or until the reader may think that nobody is here."""
        settings = self._desk.controller.settings
        quiet_s = settings.delta_s if self._grows() else settings.keep_alive_s
        news, closing = (asyncio.ensure_future(e.wait()) for e in (self._news, self._desk.closing))
        try:
            await asyncio.wait((news, closing), timeout=quiet_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            closing.cancel()
        self._news.clear()

    def _grows(self) -> bool:
        """Whether there may be output that nobody says anything of."""
        views = (self._published.job(job_id) for job_id, _ in self._outputs)
        return any(view is not None and view["state"] in WITH_PROCESSES for view in views)

    async def _wait_for(self, event: asyncio.Event, most_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), most_s)
