"""Whole gangs without preemption: running jobs stay, waiting ones start as far as the fill rule lets them."""

from __future__ import annotations

from trainyard.model.arrays import Ints
from trainyard.policy.choose.reservation import Reservation
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Request, Stages
from trainyard.state.jobs import Column
from trainyard.state.record import Record

C = Column


class Starts:
    """Non-preemptive: running jobs stay; waiting ones start in order as far as the fill rule lets them."""

    def __init__(self, policy: Stages, draft: Draft) -> None:
        self.policy = policy
        self.draft = draft
        self.snapshot = draft.view
        self.left = draft.view.free.total  # GPUs that are free if all that was started is taken out

    def run(self) -> None:
        """Choose the jobs to start."""
        fill = self.policy.order.fill
        if fill == "greedy":
            self._fill(self.policy.order.rank(self.snapshot), None)
            return
        snapshot = self.snapshot
        stuck, freed = snapshot.caches.get((self.policy.place, self.policy.tune), (None, 0))
        for record in self.policy.order.heads(snapshot):
            if record is stuck and fill == "strict" and freed == snapshot.freed:
                break  # it found no place, and nothing became free since
            if not self._start(record):
                if fill == "easy":
                    behind = self.policy.order.rank(snapshot)[len(self.draft.changes) + 1 :]
                    self._fill(behind, record)
                elif not self.draft.changes:
                    snapshot.caches[self.policy.place, self.policy.tune] = record, snapshot.freed
                break

    def _request(self, record: Record) -> Request:
        return self.policy.tune.request(self.snapshot, record.job, record.gpus, record.type_index)

    def _start(self, record: Record) -> bool:
        if record.gpus > self.left:
            return False
        policy = self.policy
        request = policy.tune.request(self.snapshot, record.job, record.gpus, record.type_index)
        allocation = self.draft.try_(policy.place, request)
        if allocation is None:
            return False
        self.left -= allocation.gpus
        return True

    def _fill(self, rows: Ints, head: Record | None) -> None:
        """Start whatever fits, in order, without delaying the head."""
        snap, draft = self.snapshot, self.draft
        rows = rows[snap.table.column(C.GPUS)[rows] <= self.left]
        if not rows.size:
            return
        reserved = None
        if head is not None:
            reserved = Reservation(draft, self._request(head), self.policy.place)
        hopeless: set[tuple[object, ...]] = set()
        for row in rows.tolist():
            record = snap.table.records[row]
            asked = self._request(record)[1:]
            if asked in hopeless:
                continue
            if not self._start(record):
                hopeless.add(asked)
            elif reserved is not None:
                given = draft.changes[record.job_id]
                assert given is not None
                if not reserved.allows(record, given):
                    self.left += given.gpus
                    draft.take_back()
