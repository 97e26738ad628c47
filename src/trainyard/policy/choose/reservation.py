"""EASY backfilling: later jobs may pass the first one that does not fit, but never delay it."""

from __future__ import annotations

import numpy as np

from trainyard.model.allocation import Allocation
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.jobs import Column
from trainyard.state.record import Record

C = Column


class Reservation:
    """When the head can start at the latest, and what stays free beside it from then on."""

    def __init__(self, draft: Draft, head: Request, place: Place) -> None:
        self.snapshot = snapshot = draft.view
        self.start_s = float("inf")
        self.beside = draft.room.copy()
        started = {job_id: a for job_id, a in draft.changes.items() if a is not None}
        for finish_s, allocation in self._releases(started):
            self.beside.give(snapshot.nodes, allocation)
            probe = self.beside.copy()
            if place.put(head, probe, snapshot.nodes, snapshot.rules.seed) is not None:
                self.start_s, self.beside = finish_s, probe
                break

    def _releases(self, started: dict[str, Allocation]) -> list[tuple[float, Allocation]]:
        snap = self.snapshot
        rate = snap.table.column(C.RATE)
        left = snap.remaining_samples()
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.maximum(snap.table.column(C.SINCE), snap.now_s) + left / rate
        of = snap.table.of
        running = [(float(ends[of[j].row]), j, a) for j, a in snap.target.items() if of[j].rate > 0]
        soon = [(self.end_s(of[j], a), j, a) for j, a in started.items()]
        return [(end, a) for end, _, a in sorted(running + soon, key=lambda r: (r[0], r[1]))]

    def end_s(self, record: Record, allocation: Allocation) -> float:
        """Predicted finish of a job that starts now."""
        snap = self.snapshot
        return snap.now_s + record.remaining / snap.speed.rate(record.job, allocation)

    def allows(self, record: Record, allocation: Allocation) -> bool:
        """Whether starting this job now leaves the head's start where it is; if so, count it in."""
        if self.end_s(record, allocation) <= self.start_s:
            return True
        index, beside = self.snapshot.nodes.index, self.beside
        # With plain room a free GPU brings its share along, whatever a tune stage lent of it to others.
        plain = allocation.plain or self.snapshot.nodes.is_proportional(allocation)
        whole = not (beside.plain and plain)
        for share in allocation.shares:
            i = index[share.node]
            lacks = beside.cpus[i] + CPUS_GB < share.cpus or beside.memory_gb[i] + CPUS_GB < share.memory_gb
            if beside.gpus[i] < share.gpus or (whole and lacks):
                return False
        beside.take(self.snapshot.nodes, allocation)
        return True
