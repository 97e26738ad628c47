"""Looking at what runs: now and then at everything, and at once where a backend hints that there is news."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from trainyard.live.backends.base import Backend, Observation, RunKey, Unknown
from trainyard.live.settings import Settings

SOON_S = 0.02  # hints that come together are looked at together
Runs = frozenset[RunKey] | None  # None: all of them
Take = Callable[[Observation, float, Runs], Awaitable[None]]


class Eyes:
    """Hands every look of a backend on to the controller."""

    def __init__(self, backend: Backend, take: Take, settings: Settings) -> None:
        self.backend, self.settings = backend, settings
        self.answered_at = time.monotonic()  # when the backend last answered
        self._waits = False  # whether the last look has no answer
        self.silence = ""  # why it does not, if it does not
        self._take = take
        self._news = asyncio.Event()

    @property
    def silent_s(self) -> float:
        """How long the backend has not answered, if that is long; else 0."""
        silent = time.monotonic() - self.answered_at if self._waits else 0.0
        return silent if silent > self.settings.silent_s else 0.0

    async def run(self) -> None:
        """Look until this is cancelled."""
        listening = asyncio.create_task(self.backend.listen(self._news.set))
        looked = -1e9
        try:
            while True:
                whole = time.monotonic() - looked >= self.settings.observe_s
                if whole:
                    looked = time.monotonic()
                only = None if whole else self._noticed()
                if (look := await self.look(only)) is not None:
                    await self._take(*look, only)
                await self._pause(looked + self.settings.observe_s - time.monotonic())
        finally:
            listening.cancel()

    def _noticed(self) -> frozenset[RunKey]:
        noticed, self.backend.noticed = frozenset(self.backend.noticed), set()
        return noticed

    async def _pause(self, most_s: float) -> None:
        try:
            await asyncio.wait_for(self._news.wait(), max(most_s, 0.0))
            await asyncio.sleep(SOON_S)
        except TimeoutError:
            pass
        self._news.clear()

    async def look(self, only: Runs) -> tuple[Observation, float] | None:
        """Look once; return what is there, and when the look began. No answer is no evidence of anything."""
        if only is not None and not only:
            return None
        began, self._waits = time.monotonic(), True
        try:
            seen = await asyncio.wait_for(self.backend.observe(only), self.settings.act_s)
        except Exception as error:
            seen = Unknown(str(error) or "it did not answer in time")
        if isinstance(seen, Unknown):
            self.silence = seen.why
            return None
        self.answered_at, self.silence, self._waits = time.monotonic(), "", False
        return seen, began
