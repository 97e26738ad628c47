"""Carrying out what was committed: each intent until it is done, however often that takes.

Nothing here is remembered over a crash. What is not marked as done is done again; backends are idempotent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.live.backends.base import Backend, RunKey, Shares
from trainyard.live.intents import Intent, run_spec
from trainyard.live.labels import Label, nothing
from trainyard.live.observing import Todo
from trainyard.live.settings import Settings

AGAIN = ("start", "end servers", "stop", "kill")  # what may be done again after a look
Marker = Callable[[Intent, float], None]


class Hands:
    """Acts for one controller, in its event loop."""

    def __init__(
        self,
        backend: Backend,
        spec_of: Callable[[str], Mapping[str, Any]],
        mark: Marker,
        fenced: Callable[[str], None],
        settings: Settings,
        at: Label = nothing,
    ) -> None:
        """`mark` is told what is done, and when (monotonic); `fenced` which node is certainly empty."""
        self.backend, self.settings = backend, settings
        self.trouble: dict[str, str] = {}  # what could not be done so far, and why
        self._spec_of, self._mark, self._fenced, self._at = spec_of, mark, fenced, at
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[RunKey, asyncio.Task[None]] = {}  # what starts, retunes and stops a run, in order
        self._repeated: dict[tuple[str, RunKey], float] = {}
        self._starts: dict[RunKey, Intent] = {}  # of runs that may have to be started again

    @property
    def busy(self) -> bool:
        """Whether anything is being done."""
        return bool(self._tasks)

    def take(self, intents: Sequence[Intent]) -> None:
        """Begin to carry out what was committed; after the end the next controller does."""
        if self._closed:
            return
        for intent in intents:
            ordered = intent.kind in ("start", "retune", "stop")  # a kill waits for nothing
            before = self._last.get(intent.key) if ordered else None
            task = self._begin(self._carry_out(intent, before))
            if ordered:
                self._last[intent.key] = task
            if intent.kind == "start":
                self._starts[intent.key] = intent

    def know(self, starts: Sequence[Intent]) -> None:
        """Remember how runs were started by an earlier controller, in case that has to be done again."""
        self._starts.update((intent.key, intent) for intent in starts)

    def do(self, todo: Todo, grace_s: Callable[[str], float]) -> None:
        """Do, or do again, what a look asked for; not too often."""
        for key in todo.restart:
            if key in self._starts:
                self._repeat("start", key, partial(self._start, self._starts[key]))
        for key in todo.end_servers:
            self._repeat("end servers", key, partial(self.backend.end_servers, key))
        for key in todo.stop:
            self._repeat("stop", key, partial(self.backend.ensure_stopping, key, grace_s(key.job_id)))
        for key in (*todo.kill, *todo.orphans):
            self._repeat("kill", key, partial(self.backend.ensure_gone, key))

    def forget(self, keys: Sequence[RunKey]) -> None:
        """The ends of these runs are written down."""
        for key in keys:
            self._starts.pop(key, None)
            self._last.pop(key, None)
            for what in AGAIN:
                self._repeated.pop((what, key), None)
                self.trouble.pop(f"{what} {key.job_id}", None)
            self._begin(self._forget(key))

    def close(self) -> None:
        """Begin nothing more; what was not marked as done is done again by the next controller."""
        self._closed = True
        for task in self._tasks:
            task.cancel()

    async def _forget(self, key: RunKey) -> None:
        await self._once(f"forget {key.job_id}", partial(self.backend.forget, key))

    def _begin(self, doing: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _repeat(self, what: str, key: RunKey, act: Callable[[], Any]) -> None:
        now = time.monotonic()
        if now - self._repeated.get((what, key), -1e9) >= self.settings.again_s:
            self._repeated[what, key] = now
            self._begin(self._once(f"{what} {key.job_id}", act))

    async def _once(self, what: str, act: Callable[[], Any]) -> None:
        try:
            await asyncio.wait_for(act(), self.settings.act_s)
            self.trouble.pop(what, None)
        except Exception as error:
            self.trouble[what] = _said(error)

    async def _carry_out(self, intent: Intent, before: asyncio.Task[None] | None) -> None:
        """Do one thing until it is done."""
        if before is not None:
            await asyncio.wait([before])
        what = f"{intent.kind} {intent.job_id or intent.record.get('node')}"
        while not self._closed:  # a task may miss that it is cancelled
            try:
                self._at("before act")
                await asyncio.wait_for(self._act(intent), self.settings.act_s)
                self._at("after act")
                self.trouble.pop(what, None)
                self._mark(intent, time.monotonic())
                return
            except Exception as error:  # whatever a backend raises: it is tried again
                self.trouble[what] = _said(error)
            await asyncio.sleep(self.settings.again_s)

    async def _act(self, intent: Intent) -> None:
        backend, key = self.backend, intent.key
        if intent.kind == "start":
            await self._start(intent)
        elif intent.kind == "stop":
            await backend.ensure_stopping(key, intent.record["grace_s"])
        elif intent.kind == "kill":
            await backend.ensure_gone(key)
        elif intent.kind == "retune":
            shares = {node: Shares(*share) for node, share in intent.record["shares"].items()}
            await backend.retune(key, shares)
        elif await backend.fence(intent.record["node"]):
            self._fenced(intent.record["node"])
        else:
            raise TrainyardError("it is not certain yet that nothing runs there")

    async def _start(self, intent: Intent) -> None:
        await self.backend.ensure_started(run_spec(intent, self._spec_of(intent.job_id)))


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or type(error).__name__
