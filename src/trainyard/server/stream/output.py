"""A job's output as it grows, over all its attempts."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from typing import Any

from trainyard.live.backends.base import Backend, RunKey
from trainyard.live.views import View
from trainyard.server.stream.topics import LogTopic
from trainyard.state.lifecycle import TERMINAL

Event = dict[str, Any]


class Output:
    """Where one reader is in the output of one process."""

    def __init__(self, backend: Backend, topic: LogTopic) -> None:
        self._backend, self._topic = backend, topic
        self._attempt, self._offset = topic.since or (0, 0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def news(self, view: View) -> AsyncIterator[Event]:
        """Return what came since the last time; `view` is the job, seen before its output is read."""
        while True:
            async for event in self._read():
                yield event
            over = view["attempt"] > self._attempt or view["state"] in TERMINAL
            if over and (rest := self._decoder.decode(b"", final=True)):
                yield self._event(rest)
            if view["attempt"] <= self._attempt:
                return
            self._attempt, self._offset = self._attempt + 1, 0

    async def place(self, view: View) -> None:
        """Begin at the end of what is there, unless the reader said where."""
        if self._topic.since is not None:
            return
        self._attempt = view["attempt"]
        key = RunKey(self._topic.job_id, self._attempt)
        async for offset, _ in self._backend.logs(key, self._topic.rank, server=self._topic.server, lines=1):
            self._offset = offset

    async def _read(self) -> AsyncIterator[Event]:
        key, topic = RunKey(self._topic.job_id, self._attempt), self._topic
        if self._attempt < 1:
            return
        async for offset, data in self._backend.logs(
            key, topic.rank, server=topic.server, offset=self._offset
        ):
            self._offset = offset
            if text := self._decoder.decode(data):
                yield self._event(text)

    def _event(self, text: str) -> Event:
        topic = self._topic
        role = {"server": True} if topic.server else {}
        place = {"attempt": self._attempt, "offset": self._offset}
        return {"job_id": topic.job_id, "rank": topic.rank, **role, **place, "text": text}
