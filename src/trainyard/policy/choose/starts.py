"""Whole gangs without preemption: running jobs stay, waiting ones start as far as the fill rule lets them."""

from __future__ import annotations

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Ints
from trainyard.policy.choose.reservation import Reservation
from trainyard.policy.stages import Request, Stages
from trainyard.state.jobs import Column
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot

C = Column
TYPE = Column.TYPE


class Starts:
    """Non-preemptive: running jobs stay; waiting ones start in order as far as the fill rule lets them."""

    def __init__(self, policy: Stages, snapshot: Snapshot) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.free = snapshot.free
        self.left = snapshot.free.total  # GPUs that are free if all that was started is taken out
        self.latest: tuple[Request, Allocation] | None = None  # started, but not yet taken out
        self.started: dict[str, Allocation] = {}

    def run(self) -> dict[str, Allocation]:
        """Return the jobs to start."""
        fill = self.policy.order.fill
        if fill == "greedy":
            self._fill(self.policy.order.rank(self.snapshot), None)
            return self.started
        waiting, jobs = self.snapshot.waiting, self.snapshot.table.jobs
        for row in self.policy.order.heads(self.snapshot):
            if fill == "strict":
                job_id = jobs[row].job_id
                if self.snapshot.still and waiting.blocked == job_id:
                    break  # nothing became free since it found no place
                waiting.blocked = job_id
            if not self._start(row):
                if fill == "easy":
                    behind = self.policy.order.rank(self.snapshot)[len(self.started) + 1 :]
                    self._fill(behind, row)
                break
        return self.started

    def _request(self, row: int) -> Request:
        table = self.snapshot.table
        job = table.jobs[row]
        return self.policy.tune.request(self.snapshot, job, job.gpus, int(table.cells[TYPE][row]))

    def _start(self, row: int) -> bool:
        snap = self.snapshot
        job = snap.table.jobs[row]
        if job.gpus > self.left:
            return False
        request = self._request(row)
        allocation = self.policy.place.find(request, self._room(), snap.nodes, snap.rules.seed)
        if allocation is None:
            return False
        self.started[job.job_id] = allocation
        self.latest = request, allocation
        self.left -= allocation.gpus
        return True

    def _room(self) -> Room:
        """Return what is free; what started last is only now taken out, as often no job asks again."""
        if self.latest is not None:
            if self.free is self.snapshot.free:
                self.free = self.free.copy()
            request, allocation = self.latest
            request.take(allocation, self.free, self.snapshot.nodes)
            self.latest = None
        return self.free

    def _fill(self, rows: Ints, head: int | None) -> None:
        """Start whatever fits, in order, without delaying the head."""
        snap = self.snapshot
        rows = rows[snap.table.column(C.GPUS)[rows] <= self.left]
        if not rows.size:
            return
        reserved = None
        if head is not None:
            place = self.policy.place
            reserved = Reservation(snap, self._request(head), self._room(), dict(self.started), place)
        hopeless: set[tuple[object, ...]] = set()
        for row in rows.tolist():
            job = snap.table.jobs[row]
            asked = self._request(row)[1:]
            if asked in hopeless:
                continue
            if not self._start(row):
                hopeless.add(asked)
            elif reserved is not None and not reserved.allows(job.job_id, self.started[job.job_id]):
                self.left += self.started.pop(job.job_id).gpus
                self.latest = None
