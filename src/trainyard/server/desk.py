"""What all answers are made from: the controller at work, its store, and how to ask it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from trainyard.core.events import Event
from trainyard.core.instructions import Ignored
from trainyard.live.controller import Controller
from trainyard.live.daemon import Live
from trainyard.live.shell import EndedError
from trainyard.model.profile import Profile
from trainyard.server.faults import Refusal
from trainyard.server.place import user_name

T = TypeVar("T")
LOOK_S = 0.25  # between two looks at a store that does not answer
MOST_READERS = 8  # of the store at once; the controller's own connection comes from the same pool


class IgnoredError(Exception):
    """The core made nothing of an event; why."""


@dataclass(slots=True)
class Desk:
    """What the API knows of the controller that it speaks for."""

    live: Live
    store_url: str  # without a password
    notes: Sequence[str] = ()  # what `up` said when it began
    limits: str = ""
    models: Mapping[str, Profile] = field(default_factory=dict)
    owner: str = field(default_factory=user_name)
    started_s: float = field(default_factory=time.time)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)  # nothing is begun any more
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # streams end
    down: Callable[[bool], None] = lambda checkpoint: None  # begins to end the process
    last_words: dict[str, Any] = field(default_factory=dict)  # of streams
    readers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_READERS))

    @property
    def controller(self) -> Controller:
        """The controller; only what is published of it may be read here."""
        return self.live.controller

    def checkpoint(self, job_id: str) -> str | None:
        """Return where a job saves its work, if it is known here and there is anything."""
        layout = getattr(self.live.backend, "layout", None)
        path = None if layout is None else layout.checkpoint(job_id)
        return str(path) if path is not None and path.is_dir() else None

    def note(self) -> str:
        """Say what whoever reads any answer should know; mostly nothing."""
        silent_s, trouble = self.live.eyes.silent_s, self.live.shell.store_trouble
        if silent_s:
            since = time.strftime("%H:%M:%S", time.localtime(time.time() - silent_s))
            name = self.live.backend.name
            return f"{name} has not answered for {silent_s:.0f} s; states below are from {since}"
        if trouble is None:
            return ""
        return f"the store cannot be written for {time.monotonic() - trouble[0]:.0f} s: {trouble[1]}"

    async def ask(self, ask: Callable[[Controller], T]) -> T:
        """Have something changed; the answer comes after it is written down, or 503 if it cannot be."""
        if self.leaving.is_set():
            raise Refusal(503, "the controller is going down; `trainyard up` starts it again")
        answer = asyncio.ensure_future(self.live.ask(ask))
        try:
            while not (await asyncio.wait({answer}, timeout=LOOK_S))[0]:
                self._look()
            return answer.result()
        except EndedError as error:
            raise Refusal(503, str(error)) from None
        except SQLAlchemyError as error:
            raise Refusal(503, f"the store does not answer: {_first_line(error)}") from None
        finally:
            answer.cancel()

    def _look(self) -> None:
        """Give up on a store that cannot be written."""
        trouble, patience = self.live.shell.store_trouble, self.controller.settings.store_s
        if trouble is not None and time.monotonic() - trouble[0] >= patience:
            what = "this may still be done later, a repeated submission is not doubled"
            raise Refusal(503, f"the store cannot be written: {trouble[1]}; {what}")

    async def tell(self, event: Callable[[float], Event], by: str) -> None:
        """Tell the core of an event; 409 if it makes nothing of it."""

        def tell(controller: Controller) -> None:
            for said in controller.tell(event(controller.clock.now()), by):
                if isinstance(said, Ignored):
                    raise IgnoredError(said.why)

        try:
            await self.ask(tell)
        except IgnoredError as error:
            raise Refusal(409, str(error)) from None

    async def read(self, read: Callable[[Connection], T]) -> T:
        """Read the store, beside everything else."""

        def in_thread() -> T:
            with self.controller.store.engine.connect() as connection:
                return read(connection)

        try:
            async with self.readers:
                return await asyncio.to_thread(in_thread)
        except SQLAlchemyError as error:
            raise Refusal(503, f"the store does not answer: {_first_line(error)}") from None


def _first_line(error: SQLAlchemyError) -> str:
    return (str(getattr(error, "orig", None) or error).strip().splitlines() or ["?"])[0]
