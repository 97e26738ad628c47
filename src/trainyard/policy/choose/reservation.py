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
from trainyard.state.room import PartlyClosed, Room

C = Column


class Reservation:
    """When the head can start at the latest, and what stays free beside it from then on."""

    def __init__(self, draft: Draft, head: Request, place: Place) -> None:
        self.snapshot = snapshot = draft.view
        self.start_s = float("inf")
        self.beside = draft.room.copy()
        self.shut = 0  # nodes, as a bit mask, that others have reserved when the head starts
        started = {job_id: a for job_id, a in draft.changes.items() if a is not None}
        for at_s, allocation in self._moments(started):
            if allocation is not None:
                self.beside.give(snapshot.nodes, allocation)
            probe, shut = self._open_to(head, at_s)
            if place.put(head, probe, snapshot.nodes, snapshot.rules.seed) is not None:
                self.start_s, self.beside, self.shut = at_s, probe, shut
                break

    def _open_to(self, head: Request, at_s: float) -> tuple[Room, int]:
        """Return the room that the head may use at a moment, and the nodes that others have reserved then."""
        snap, probe = self.snapshot, self.beside.copy()
        if snap.bars is None or not isinstance(probe, PartlyClosed):
            return probe, 0
        shut = snap.bars.of(snap.table.of[head.job.job_id], at_s)
        over = snap.bars.nobodys(snap.now_s) & ~snap.bars.nobodys(at_s)
        for i in range(len(snap.nodes.ids)):
            if shut >> i & 1:
                probe.close(i)
            elif over >> i & 1:
                probe.open(i)
        return probe, shut

    def _moments(self, started: dict[str, Allocation]) -> list[tuple[float, Allocation | None]]:
        """When something comes free: a job ends, or a reservation does."""
        moments: list[tuple[float, Allocation | None]] = [*self._releases(started)]
        if self.snapshot.bars is not None:
            moments += [(to_s, None) for _, to_s, _, _ in self.snapshot.bars.windows]
            moments.sort(key=lambda moment: moment[0])
        return moments

    def _releases(self, started: dict[str, Allocation]) -> list[tuple[float, Allocation]]:
        snap = self.snapshot
        rate = snap.table.column(C.RATE)
        left = snap.remaining_samples()
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.maximum(snap.table.column(C.SINCE), snap.now_s) + left / rate
        of = snap.table.of
        running = [(float(ends[of[j].row]), j, a) for j, a in snap.target.items() if of[j].rate > 0]
        if snap.bars is not None:
            running = [(self._until(of[j], a, end), j, a) for end, j, a in running]
        soon = [(self.end_s(of[j], a), j, a) for j, a in started.items()]
        return [(end, a) for end, _, a in sorted(running + soon, key=lambda r: (r[0], r[1]))]

    def end_s(self, record: Record, allocation: Allocation) -> float:
        """Predicted finish of a job that starts now."""
        snap = self.snapshot
        end_s = snap.now_s + record.remaining / snap.speed.rate(record.job, allocation)
        return end_s if snap.bars is None else self._until(record, allocation, end_s)

    def _until(self, record: Record, allocation: Allocation, end_s: float) -> float:
        """When a job is off its nodes: at its end, or when a reservation for others begins there."""
        snap, bars = self.snapshot, self.snapshot.bars
        assert bars is not None
        on = sum(1 << snap.nodes.index[share.node] for share in allocation.shares)
        begins = [
            from_s
            for from_s, _, tenant, nodes in bars.windows
            if nodes & on and from_s > snap.now_s and (not tenant or tenant != record.job.tenant)
        ]
        return min([end_s, *begins])

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
            if self.shut >> i & 1:
                continue  # the head is not there
            lacks = beside.cpus[i] + CPUS_GB < share.cpus or beside.memory_gb[i] + CPUS_GB < share.memory_gb
            if beside.gpus[i] < share.gpus or (whole and lacks):
                return False
        beside.take(self.snapshot.nodes, allocation)
        return True
