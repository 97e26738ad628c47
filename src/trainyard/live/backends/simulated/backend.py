"""Jobs of a trace, played: nothing runs, and every run ends when the simulator would see its end.

What a job has really done is kept in a record of our own, by the same functions with which the core keeps
what it believes. Starts cost what the rules say, stops take no time. Nothing is known here of plans or of
what the core thinks: only what a backend is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any

from trainyard.core.answers import allocation_of
from trainyard.core.progress import note_checkpoint, roll_back, settle
from trainyard.core.real.ends import SAVED
from trainyard.live.backends.base import (
    Ended,
    Exit,
    MemberKey,
    MemberState,
    Observation,
    RunKey,
    RunSpec,
    Seen,
    Shares,
)
from trainyard.live.clock import Clock
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.estimate import told
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.sim.clock import OUTCOMES
from trainyard.sim.truth import Named, Truth
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

SIGKILL = 9
RUNNING = Seen(MemberState.RUNNING)


@dataclass(slots=True)
class Run:
    """One attempt that was started."""

    spec: RunSpec
    record: Record
    shares: list[list[Any]]  # of its allocation
    began: int = 0  # number of its latest entry in the heap
    ended: Ended | None = None


class SimulatedBackend:
    """Knows how long the jobs of a trace really take, and ends them by a clock."""

    name = "simulated"

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], clock: Clock, rules: Rules | None = None
    ) -> None:
        """`jobs` as they really are; of `rules` count what starts cost and whether lengths were told."""
        self.noticed: set[RunKey] = set()
        self.withdrawn: list[str] = []  # jobs that their users cancel now, as the trace says
        self._clock, self._rules = clock, rules or Rules()
        self._nodes, self._speed = NodeTable(cluster), SpeedModel(cluster)
        unknown = self._rules.unknown_durations
        self._truth = Truth(jobs, self._speed) if unknown else Named({})
        self._records = {job.job_id: self._record(n, job) for n, job in enumerate(jobs, 1)}
        self._runs: dict[RunKey, Run] = {}
        self._gone: set[RunKey] = set()  # told to be gone, whether they had started or not
        self._ends: list[tuple[float, int, RunKey]] = []  # a heap: when, number of the entry
        self._pushed = 0

    def _record(self, n: int, job: Job) -> Record:
        """Return what a job has really done: nothing so far."""
        record = Record(job, n, -1, self._speed.work(job), job.arrival_s, 0.0)
        if self._rules.unknown_durations:
            record.begin_length(told(record.ideal_s))
        return record

    # -- what is asked for ----------------------------------------------------------------------

    async def ensure_started(self, run: RunSpec) -> None:
        """Begin a run, unless that was done or it has to be gone."""
        key, record = run.key, self._records[run.key.job_id]
        if key in self._runs or key in self._gone:
            return
        shares = [[m.node, len(m.gpus), m.servers, *m.shares] for m in run.members]
        now = self._clock.now()
        if record.first_start_s is None:
            record.first_start_s, since = now, now + self._rules.start_s
        else:
            since = now + self._restart_cost(record.job)
        record.since = record.run_since_s = since
        record.saved, record.state = record.remaining, State.RUNNING
        if record.length is not None:
            record.length.saved = record.length.done
        self._runs[key] = Run(run, record, shares)
        self.noticed.add(key)
        self._go_on(key)

    async def ensure_stopping(self, key: RunKey, grace_s: float) -> None:
        """Let a run save its work and end."""
        run, now = self._runs.get(key), self._clock.now()
        if run is None or run.ended is not None:
            return
        settle(run.record, now)
        self._end(key, code=SAVED, stop_asked=True)

    async def ensure_gone(self, key: RunKey) -> None:
        """End a run; what it did since its last checkpoint is lost."""
        run = self._runs.get(key)
        self._gone.add(key)
        if run is not None and run.ended is None:
            roll_back(run.record, self._clock.now())
            self._end(key, signal=SIGKILL)

    async def end_servers(self, key: RunKey) -> None:
        """Servers end with their workers here."""

    async def retune(self, key: RunKey, shares: Mapping[str, Shares]) -> bool:
        """Let a run go on with other CPUs or memory."""
        run, now = self._runs.get(key), self._clock.now()
        if run is None or run.ended is not None:
            return False
        note_checkpoint(run.record, now)
        settle(run.record, now)
        run.shares = [[*share[:3], *shares.get(share[0], share[3:])] for share in run.shares]
        self._go_on(key)
        return True

    async def observe(self, only: Collection[RunKey] | None = None) -> Observation:
        """Show all runs, or some."""
        self.advance()
        keys = list(self._runs) if only is None else [key for key in only if key in self._runs]
        members: dict[MemberKey, Seen] = {}
        for key in keys:
            run = self._runs[key]
            seen = RUNNING if run.ended is None else Seen(MemberState.EXITED, run.ended)
            members.update((MemberKey(*key, member.node), seen) for member in run.spec.members)
        return Observation(members)

    async def fence(self, node: str) -> bool:
        """Nodes do not fail here."""
        return True

    async def listen(self, hint: Callable[[], None]) -> None:
        """Say nothing: whoever sets the clock asks `next_end_s`."""
        await asyncio.Event().wait()

    async def forget(self, key: RunKey) -> None:
        """How a run ended is written down."""
        self._runs.pop(key, None)
        self._gone.discard(key)

    async def logs(
        self, key: RunKey, rank: int, *, server: bool = False, offset: int = 0, lines: int | None = None
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Nothing runs, so nothing is said."""
        return
        yield offset, b""

    def dry_run(self, run: RunSpec) -> str:
        """Say what it would do."""
        return f"play {run.key.job_id} as attempt {run.key.attempt}, with {run.workers} workers"

    # -- time ----------------------------------------------------------------------

    def next_end_s(self) -> float:
        """Return when the next run ends; infinity if none does by itself."""
        while self._ends and not self._counts(*self._ends[0][1:]):
            heappop(self._ends)
        return self._ends[0][0] if self._ends else inf

    def advance(self) -> None:
        """End the runs whose time has come."""
        now = self._clock.now()
        while self.next_end_s() <= now:
            key = heappop(self._ends)[2]
            outcome = OUTCOMES.get(self._records[key.job_id].job.status.lower())
            if outcome is State.CANCELLED:
                self.withdrawn.append(key.job_id)
            else:
                self._end(key, code=1 if outcome is State.FAILED else 0)

    def _counts(self, n: int, key: RunKey) -> bool:
        """Whether an entry of the heap is the last one of a run that goes on."""
        run = self._runs.get(key)
        return run is not None and run.ended is None and run.began == n

    def _go_on(self, key: RunKey) -> None:
        """A run begins, or goes on with other shares: note when it ends."""
        run = self._runs[key]
        run.record.rate = self._speed.rate(run.record.job, allocation_of(run.shares, self._nodes))
        run.began = self._pushed = self._pushed + 1
        heappush(self._ends, (self._truth.finish_s(run.record), run.began, key))

    def _end(
        self, key: RunKey, code: int | None = None, signal: int | None = None, stop_asked: bool = False
    ) -> None:
        run = self._runs[key]
        run.record.rate, run.record.state = 0.0, State.WAITING
        last = Exit(0, "worker", code, signal, self._clock.now())
        good = code in (0, SAVED)
        run.ended = Ended((last,), None if good else last, stop_asked=stop_asked)
        self.noticed.add(key)

    def _restart_cost(self, job: Job) -> float:
        """Seconds that a job needs to go on from where it was."""
        if self._rules.restart_s is not None:
            return self._rules.restart_s
        return job.profile.restart_s if job.profile is not None else 0.0
