"""What a run leaves behind: who ended how, how full the cluster was, how long decisions took."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
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


class TimedPolicy:
    """Asks a policy; notes how long each answer took, and which of them a learned policy left to another."""

    def __init__(self, policy: Policy) -> None:
        self._decide = policy.decide
        self.spent_s: list[float] = []
        self.left_to: Counter[str] = Counter()  # decisions by the stage that took them instead

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return the policy's plan."""
        began = perf_counter()
        plan = self._decide(snapshot)
        self.spent_s.append(perf_counter() - began)
        if FALLBACK in plan.notes:
            self.left_to[plan.notes[FALLBACK]] += 1
        return plan


class Recorder:
    """Keeps the outcomes and levels of one run as plain numbers; objects would take too much memory."""

    def __init__(self) -> None:
        self.ended: dict[str, int] = {}  # job -> how many ended before it
        self.levels = array("d")  # four numbers for each moment
        self._told = array("d")  # seven numbers for each job that ended

    def tell(self, record: Record, finish_s: float, fair_s: float) -> None:
        """Keep what Outcomes needs of a job, in that order."""
        ended = self.ended
        ended[record.job_id] = len(ended)
        first = record.first_start_s
        start_s, counts = math.nan if first is None else first, (record.restarts, record.preemptions)
        self._told.extend((start_s, finish_s, record.ideal_s, fair_s, record.attained, *counts))

    def tell_so_far(self, job: Job, record: Record | None, end_s: float) -> None:
        """Keep the same of a job that is not over, or has not even come."""
        self.ended[job.job_id] = len(self.ended)
        if record is None:
            self._told.extend((math.nan, math.nan, math.nan, math.nan, 0.0, 0, 0))
            return
        start_s = math.nan if record.first_start_s is None else record.first_start_s
        gpu_s, counts = record.attained_gpu_s(end_s), (record.restarts, record.preemptions)
        self._told.extend((start_s, math.nan, record.ideal_s, math.nan, gpu_s, *counts))

    def finish_s(self) -> Floats:
        """Return when each job that ended did so, in order of their ends."""
        finish_s: Floats = np.array(self._told).reshape(-1, 7)[:, 1]
        return finish_s

    def timeline(self) -> Timeline:
        """Return the levels as arrays."""
        levels = np.array(self.levels).reshape(-1, 4)
        counts = levels[:, 1:].astype(np.int64)
        return Timeline(levels[:, 0], counts[:, 0], counts[:, 1], counts[:, 2])

    def outcomes(self, jobs: Sequence[Job]) -> Outcomes:
        """Gather what became of every job, in order of arrival."""
        told = np.array(self._told).reshape(-1, 7)
        in_order = told[[self.ended[job.job_id] for job in jobs]]
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
