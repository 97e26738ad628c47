"""What a run leaves behind: who ended how, how full the cluster was, how long decisions took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from trainyard.model.allocation import Plan
from trainyard.model.arrays import Floats
from trainyard.model.job import Job
from trainyard.policy.policy import Policy
from trainyard.policy.stages import FALLBACK
from trainyard.sim.result import Outcomes, Timeline
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

PACKED = 1024  # jobs that end until somebody looks whether to pack
CELLS = 16_384  # that are packed together


class TimedPolicy:
    """Asks a policy; notes how long each answer took, and which of them a learned policy left to another."""

    def __init__(self, policy: Policy, explain: bool = False) -> None:
        self._decide: Callable[[Snapshot], Plan] = (
            partial(policy.decide, explain=True) if explain else policy.decide
        )
        self.spent_s: list[float] = []
        self.left_to: Counter[str] = Counter()  # decisions by the stage that took them instead

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return the policy's plan."""
        began = perf_counter()
        plan = self._decide(snapshot)
        self.spent_s.append(perf_counter() - began)
        notes = plan[2]
        if notes and FALLBACK in notes:
            self.left_to[notes[FALLBACK]] += 1
        return plan


class Columns:
    """Rows of numbers, packed now and then: objects would take too much memory, one by one too much time."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells: list[float] = []  # of the latest rows, one after the other
        self._packed: list[Floats] = []
        self.extend: Callable[[tuple[float, ...]], None] = self._cells.extend

    def pack(self) -> None:
        """Pack the latest rows if there are many."""
        if len(self._cells) > CELLS:
            self._packed.append(np.array(self._cells, dtype=np.float64))
            self._cells.clear()

    def rows(self) -> Floats:
        """Return all rows."""
        latest = np.array(self._cells, dtype=np.float64)
        return np.concatenate([*self._packed, latest]).reshape(-1, self._width)


class Recorder:
    """Keeps the outcomes and levels of one run."""

    def __init__(self) -> None:
        self.ended: dict[str, int] = {}  # job -> how many ended before it
        self.levels = Columns(4)
        self._told = Columns(7)
        self._tell = self._told.extend

    def tell(self, record: Record, finish_s: float, fair_s: float) -> None:
        """Keep what Outcomes needs of a job, in that order."""
        ended, start_s = self.ended, record.first_start_s
        ended[record.job_id] = number = len(ended)
        if start_s is None:
            start_s = math.nan
        gpu_s, restarts, preemptions = record.attained, record.restarts, record.preemptions
        self._tell((start_s, finish_s, record.ideal_s, fair_s, gpu_s, restarts, preemptions))
        if not number % PACKED:
            self._told.pack()
            self.levels.pack()

    def tell_so_far(self, job: Job, record: Record | None, end_s: float) -> None:
        """Keep the same of a job that is not over, or has not even come."""
        self.ended[job.job_id] = len(self.ended)
        if record is None:
            self._tell((math.nan, math.nan, math.nan, math.nan, 0.0, 0, 0))
            return
        start_s = math.nan if record.first_start_s is None else record.first_start_s
        gpu_s, counts = record.attained_gpu_s(end_s), (record.restarts, record.preemptions)
        self._tell((start_s, math.nan, record.ideal_s, math.nan, gpu_s, *counts))

    def finish_s(self) -> Floats:
        """Return when each job that ended did so, in order of their ends."""
        finish_s: Floats = self._told.rows()[:, 1]
        return finish_s

    def timeline(self) -> Timeline:
        """Return the levels as arrays."""
        levels = self.levels.rows()
        counts = levels[:, 1:].astype(np.int64)
        return Timeline(levels[:, 0], counts[:, 0], counts[:, 1], counts[:, 2])

    def outcomes(self, jobs: Sequence[Job]) -> Outcomes:
        """Gather what became of every job, in order of arrival."""
        in_order = self._told.rows()[[self.ended[job.job_id] for job in jobs]]
        start_s, finish_s, ideal_s, fair_s, gpu_s, restarts, preemptions = np.ascontiguousarray(in_order.T)
        return Outcomes(
            [job.job_id for job in jobs],
            [job.tenant for job in jobs],
            np.array([job.gpus for job in jobs], dtype=np.int64),
            np.array([job.arrival_s for job in jobs], dtype=np.float64),
            start_s,
            finish_s,
            ideal_s,
            fair_s,
            gpu_s,
            restarts.astype(np.int64),
            preemptions.astype(np.int64),
        )
