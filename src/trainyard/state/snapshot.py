"""What a policy sees: active jobs and free resources at one moment.

It is a view of the core's own state, without a copy: whoever decides reads it and changes nothing.
`Snapshot.fork` gives a copy that may be changed (what-if, tests).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.state.bars import Bars
from trainyard.state.corrections import Corrections
from trainyard.state.history import History
from trainyard.state.jobs import Column, JobTable
from trainyard.state.queue import Queue
from trainyard.state.record import Record
from trainyard.state.room import PartlyClosed, Room
from trainyard.state.seen import Ran, Seen
from trainyard.state.usage import Usage

C = Column


@dataclass(slots=True)
class Snapshot:
    """One moment of the yard, as a policy sees it. A job being stopped already counts as waiting."""

    now_s: float
    nodes: NodeTable
    speed: SpeedModel
    table: JobTable
    waiting: Queue
    target: dict[str, Allocation]
    free: Room
    up: Mask  # nodes that are not down; replaced, never written to, when that changes
    sensitivity: Sensitivity
    met: float = 0.0  # integral of the number of active jobs over time
    rules: Rules = field(default_factory=Rules)
    freed: int = 0  # rises whenever a job gives something back, or a node comes or goes
    reports: int = 0  # rises whenever a job tells how far it is
    node_events: int = 0  # nodes that came or went so far
    said: Mapping[str, Any] = field(default_factory=dict)  # notes of the last plan that had any
    bars: Bars | None = None  # reservations, if there are any; replaced, never written to
    corrections: Corrections = field(default_factory=Corrections)  # of speeds, by reports
    history: History | None = None  # past jobs, if anybody asks for them
    decided_s: float = -inf  # when the last decision was taken; -inf: there was none, or nobody knows
    # What stages keep between decisions to be quicker; without it they decide the same.
    caches: dict[object, Any] = field(default_factory=dict)
    usage: Usage | None = None  # of tenants and users, where somebody keeps count
    shuns: Mapping[str, int] | None = None  # nodes, as bit masks, where starts of jobs failed; None: none did
    away: frozenset[int] = frozenset()  # nodes that left; replaced, never written to
    up_gpus: int = field(init=False)  # GPUs of all nodes that are up

    def __post_init__(self) -> None:
        self.up_gpus = int(self.nodes.gpus[self.up].sum())

    @property
    def placed(self) -> int:
        """A number that rises with every change of the target, and when a node comes or goes."""
        return 2 * self.freed + len(self.target)  # who gives something back may make the target shorter

    @property
    def version(self) -> int:
        """A number that rises whenever anything about a job or a node changes."""
        return self.table.changed.version + self.node_events

    def intrudes(self, record: Record, after: Allocation) -> str:
        """Return a node that a job may not begin to use, but would; "" if there is none."""
        shut = self.shut_to(record, after)
        if shut:
            before = self.target.get(record.job_id)
            index, had = self.nodes.index, {} if before is None else dict(before.workers)
            for node, gpus in after.workers:
                if shut >> index[node] & 1 and gpus > had.get(node, 0):
                    return node
        return ""

    def runs_s(self, record: Record, after: Allocation) -> float:
        """Seconds from now until a job that starts with this is over; without end if nobody knows."""
        if record.length is not None and not record.length.known:
            return inf
        first = record.first_start_s is None
        cost_s = self.rules.start_s if first else self.restart_cost(record.job)
        return cost_s + record.remaining_at(self.now_s) / (self.speed.rate(record.job, after) * record.pace)

    def shut_to(self, record: Record, after: Allocation) -> int:
        """Return the nodes, as a bit mask, that a job may not begin to use, if it is given this."""
        runs_s = 0.0 if self.bars is None or record.job.preemptible else self.runs_s(record, after)
        mask = 0 if self.bars is None else self.bars.of(record, self.now_s, runs_s)
        if isinstance(self.free, PartlyClosed):
            for i in self.free.closed:
                mask |= 1 << i
        return mask

    def fork(self) -> Snapshot:
        """Return a copy that can be changed without touching the original; caches stay behind."""
        table, waiting = self.table.fork(), Queue()
        for record in self.waiting:
            waiting.add(table.of[record.job_id])
        twin = replace(
            self,
            table=table,
            waiting=waiting,
            target=self.target.copy(),
            free=self.free.copy(),
            caches={},
            corrections=self.corrections.copy(),
            usage=None if self.usage is None else self.usage.copy(),
        )
        twin.up_gpus = self.up_gpus
        return twin

    def remaining_samples(self) -> Floats:
        """Samples left of every active job, now."""
        active = self.table.data[:, : len(self.table)]
        ran: Floats = self.now_s - active[C.SINCE]
        np.maximum(ran, 0.0, out=ran)
        ran *= active[C.RATE]
        left: Floats = np.subtract(active[C.REMAINING], ran, out=ran)
        return np.maximum(left, 0.0, out=left)

    def remaining_s(self) -> Floats:
        """Predicted seconds left of every active job if it ran with what it asked for."""
        left: Floats = self.remaining_samples() / self.table.column(C.REFERENCE_RATE)
        return left

    def restart_cost(self, job: Job) -> float:
        """Seconds without progress when a job resumes or its workers change."""
        if self.rules.restart_s is not None:
            return self.rules.restart_s
        return job.profile.restart_s if job.profile is not None else 0.0

    def seen(self, row: int) -> Ran:
        """Return the sizes a job has run at, the present one included unless it reports that itself."""
        record = self.table.records[row]
        ran, rate = self.now_s - record.since, record.rate
        before: Ran = record.seen.ran if record.seen is not None else {}
        if ran <= 0 or rate <= 0 or record.reported_s >= 0:
            return before
        held, now = self.target[record.job_id], Seen(before.copy())
        now.ran_at((held.gpus, held.servers), ran, rate * ran)
        return now.ran

    def attained_gpu_s(self) -> Floats:
        """GPU-seconds every active job has held so far."""
        active = self.table.data[:, : len(self.table)]
        got: Floats = self.now_s - active[C.GIVEN_SINCE]
        got *= active[C.GIVEN]
        got *= active[C.RATE] > 0  # what is planned is not yet had
        got += active[C.ATTAINED]
        return got

    def executed_s(self) -> Floats:
        """Seconds every active job has held GPUs so far."""
        t = self.table
        runs = (t.column(C.GIVEN) > 0) & (t.column(C.RATE) > 0)
        got: Floats = t.column(C.EXECUTED) + runs * (self.now_s - t.column(C.GIVEN_SINCE))
        return got

    def contention(self) -> Floats:
        """Average number of active jobs, itself included, over the life of every active job."""
        lived = self.now_s - self.table.column(C.ARRIVAL)
        met = self.met - self.table.column(C.MET)
        count = float(len(self.table))
        mean: Floats = np.where(lived > 0, met / np.where(lived > 0, lived, 1.0), count)
        return mean

    def waiting_rows(self) -> Ints:
        """Rows of all waiting jobs, in order of submission."""
        return np.array([record.row for record in self.waiting], dtype=np.int64)
