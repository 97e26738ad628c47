"""A trace through a real controller: what users did, at the times of the trace, by a clock that is set.

All of a controller is at work but its waiting: submissions and looks go through the shell's queue, every
event and intent is committed to the store, intents are carried out by hands, and ends are what looks at the
simulated backend show. Only there is no thread and no sleep: the clock is set to the next moment at which
anything happens, once nobody has anything left to do. At equal times runs end, then jobs come, then the
policy is asked, as in the simulator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from math import inf
from operator import attrgetter
from typing import Any

from trainyard.core.events import JobCancelled
from trainyard.errors import TrainyardError
from trainyard.live.backends.simulated.backend import SimulatedBackend
from trainyard.live.clock import SetClock
from trainyard.live.controller import Controller
from trainyard.live.daemon import Live
from trainyard.live.views import Info
from trainyard.model.job import Job
from trainyard.sim.truth import hidden

SPEC: dict[str, Any] = {"command": [], "workdir": "", "env": {}, "grace_s": None}  # nothing runs


class Player:
    """Plays the jobs of a trace; it may stop at any moment, and another one goes on with its store."""

    def __init__(
        self,
        live: Live,
        backend: SimulatedBackend,
        clock: SetClock,
        jobs: Sequence[Job],
        unknown_durations: bool = False,
    ) -> None:
        """Go on after the jobs that the controller knows; with `unknown_durations` their work is not told."""
        self.live, self.backend, self.clock = live, backend, clock
        self._jobs = sorted(jobs, key=attrgetter("arrival_s"))
        self._unknown = unknown_durations
        self._come = live.controller.number  # jobs that have been submitted
        self._looks: list[asyncio.Task[None]] = []

    async def play(self, until_s: float = inf) -> None:
        """Play everything that happens up to a time."""
        await self._settle()
        while (at := self._next_s()) <= until_s and at < inf:
            self.clock.now_s = max(at, self.clock.now_s)
            self.backend.advance()
            self._withdraw()
            await self._look()
            self._submit()
            await self._settle()
        if until_s == inf and (left := self._left()):
            raise TrainyardError(f"job {left[0]} waits and nothing will ever happen")

    def _next_s(self) -> float:
        arrival_s = self._jobs[self._come].arrival_s if self._come < len(self._jobs) else inf
        return min(arrival_s, self.backend.next_end_s(), self.live.controller.due_at())

    def _left(self) -> list[str]:
        yard = self.live.controller.yard
        return [*yard.records, *yard.parked]

    # -- what happens at one time ----------------------------------------------------------------------

    def _submit(self) -> None:
        """Hand in the jobs that come now."""
        while self._come < len(self._jobs) and self._jobs[self._come].arrival_s <= self.clock.now_s:
            job = self._jobs[self._come]
            self._come += 1
            info = Info(self._come, job.job_id, job.tenant, SPEC, self.clock.now_s)
            shown = hidden(job) if self._unknown else job
            self.live.shell.ask(partial(Controller.submit, job=shown, info=info))

    def _withdraw(self) -> None:
        """Cancel the jobs whose users do that now."""
        withdrawn, self.backend.withdrawn = self.backend.withdrawn, []
        for job_id in withdrawn:
            self.live.shell.ask(partial(_cancel, job_id=job_id))

    async def _look(self) -> None:
        """Look at what the backend hints at, and hand on what is seen."""
        noticed, self.backend.noticed = frozenset(self.backend.noticed), set()
        if not noticed:
            return
        self._looks.append(asyncio.create_task(self.live.look(noticed)))
        while not self.live.shell.is_asked:  # until the look is in the queue
            await asyncio.sleep(0)

    async def _settle(self) -> None:
        """Let everything follow that follows at this time: what is asked, decided, carried out, and seen."""
        shell, hands, busy = self.live.shell, self.live.hands, True
        while busy:
            busy = shell.is_asked
            shell.work(shell.asked())
            await asyncio.sleep(0)  # what was committed reaches the hands
            while hands.busy:
                await asyncio.sleep(0)
            await self._look()
            self._looks = [look for look in self._looks if not look.done()]
            busy |= bool(self._looks) or shell.is_asked


def _cancel(controller: Controller, job_id: str) -> None:
    text = "cancelled, as in the trace"
    controller.tell(JobCancelled(controller.clock.now(), job_id, at_once=True, text=text), "trace")
