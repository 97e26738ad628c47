"""A policy: four stages, asked in turn, make one plan out of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trainyard.model.allocation import Allocation, Plan
from trainyard.model.cluster import Ints
from trainyard.policy.backfill import Reservation
from trainyard.policy.fixed import Fixed
from trainyard.policy.order import Fifo
from trainyard.policy.pack import Pack
from trainyard.policy.proportional import Proportional
from trainyard.policy.select import Mask, Pools, greedy
from trainyard.policy.snapshot import Column, Free, Snapshot
from trainyard.policy.stages import Order, Place, Request, Size, Tune

C = Column
Changes = dict[str, Allocation | None]


@dataclass(frozen=True, slots=True)
class Policy:
    """Who goes first, how big, where, and with how much CPU and memory."""

    name: str = "fifo"
    order: Order = field(default_factory=Fifo)
    size: Size = field(default_factory=Fixed)
    place: Place = field(default_factory=Pack)
    tune: Tune = field(default_factory=Proportional)

    def decide(self, snapshot: Snapshot) -> Plan:
        """Return what should run now. Reads the snapshot, changes nothing."""
        if not self.order.preemptive and isinstance(self.size, Fixed):
            changes: Changes = dict(_Starts(self, snapshot).run())
            wake_s = None
        else:
            changes, rows = _Reselection(self, snapshot).run()
            wake_s = self.order.wake_s(snapshot, rows)
        return Plan(snapshot.running, self.tune.share(snapshot, changes), wake_s)


class _Starts:
    """Non-preemptive: running jobs stay; waiting ones start in order as far as the fill rule lets them."""

    def __init__(self, policy: Policy, snapshot: Snapshot) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.free = snapshot.free
        self.started: dict[str, Allocation] = {}

    def run(self) -> dict[str, Allocation]:
        """Return the jobs to start."""
        if not self.snapshot.waiting.entries or not self.free.total:
            return {}
        fill = self.policy.order.fill
        if fill == "greedy":
            self._fill(self.policy.order.rank(self.snapshot), None)
            return self.started
        for place, row in enumerate(self.policy.order.heads(self.snapshot)):
            if not self._start(row):
                if fill == "easy":
                    self._fill(self.policy.order.rank(self.snapshot)[place + 1 :], row)
                break
        return self.started

    def _request(self, row: int) -> Request:
        table = self.snapshot.table
        job = table.jobs[row]
        return self.policy.tune.request(job, job.gpus, int(table.data[C.TYPE, row]))

    def _start(self, row: int) -> bool:
        job = self.snapshot.table.jobs[row]
        if job.gpus > self.free.total:
            return False
        if self.free is self.snapshot.free:
            self.free = self.free.copy()
        snap = self.snapshot
        allocation = self.policy.place.put(self._request(row), self.free, snap.nodes, snap.seed)
        if allocation is not None:
            self.started[job.job_id] = allocation
        return allocation is not None

    def _fill(self, rows: Ints, head: int | None) -> None:
        """Start whatever fits, in order, without delaying the head."""
        snap = self.snapshot
        rows = rows[snap.table.column(C.GPUS)[rows] <= self.free.total]
        if not rows.size:
            return
        reserved = None
        if head is not None:
            place = self.policy.place
            reserved = Reservation(snap, self._request(head), self.free, dict(self.started), place)
        hopeless: set[tuple[object, ...]] = set()
        for row in rows.tolist():
            job = snap.table.jobs[row]
            kind = (job.gpus, job.gpu_type, job.cpus, job.memory_gb)
            if kind in hopeless:
                continue
            if not self._start(row):
                hopeless.add(kind)
            elif reserved is not None and not reserved.allows(job.job_id, self.started[job.job_id]):
                self.free.give(snap.nodes.index, self.started.pop(job.job_id).shares)


class _Reselection:
    """Preemptive or elastic: choose anew who runs with how much; whoever stays as it is stays where it is."""

    def __init__(self, policy: Policy, snapshot: Snapshot) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.table = snapshot.table
        self.held = snapshot.table.column(C.HELD)

    def run(self) -> tuple[Changes, Ints]:
        """Return the changes and the rows that run from now on."""
        if not len(self.table):
            return {}, np.zeros(0, dtype=np.int64)
        if self._all_fit():  # then there is nothing to choose, and no need to sort
            attempt = self._attempt(self._running_first(self.snapshot.waiting_rows()))
            if not attempt.failed.any():
                return attempt.changes, attempt.rows
        ranked = self.policy.order.rank(self.snapshot)
        if not self.policy.order.preemptive:
            ranked = self._running_first(ranked)
        while True:
            attempt = self._attempt(ranked)
            if not attempt.failed.any():
                return attempt.changes, attempt.rows
            ranked = ranked[~attempt.failed]

    def _all_fit(self) -> bool:
        snap = self.snapshot
        one_type = len(snap.nodes.types) == 1 and isinstance(self.policy.size, Fixed)
        return one_type and bool(self.table.column(C.GPUS).sum() <= snap.up_gpus)

    def _running_first(self, waiting: Ints) -> Ints:
        running = np.flatnonzero(self.held > 0)
        return np.concatenate([running[np.argsort(self.table.column(C.SEQ)[running])], waiting])

    def _attempt(self, ranked: Ints) -> _Attempt:
        """Select by GPU count, then place what is new or changed; say which jobs found no place."""
        demand = self.policy.size.sizes(self.snapshot, ranked)
        if demand is None:
            demand = self.table.column(C.GPUS)[ranked].astype(np.int64)
        chosen, types = self._select(ranked, demand)
        rows = ranked[chosen]
        target = np.zeros(self.held.size)
        target[rows] = demand[chosen]
        changed = target != self.held
        failed: Mask = np.zeros(ranked.size, dtype=np.bool_)
        if types is not None:
            changed[rows[types[chosen] >= 0]] = True
        if not changed.any():
            return _Attempt({}, rows, failed)
        scratch, changes = self._release(changed)
        for i in np.flatnonzero(chosen & changed[ranked]).tolist():
            if failed[i]:
                continue
            row, type_ = int(ranked[i]), -1 if types is None else int(types[i])
            allocation = self._put(row, int(demand[i]), type_, scratch)
            if allocation is None:
                failed |= self._alike(ranked, demand, i)
            else:
                changes[self.table.jobs[row].job_id] = allocation
        return _Attempt(changes, rows, failed)

    def _sizes(self, row: int, gpus: int) -> range:
        """Sizes to try: where they are ours to choose, rather smaller than not at all."""
        if not gpus:
            return range(0)
        least = gpus if isinstance(self.policy.size, Fixed) else int(self.table.data[C.LEAST, row])
        return range(gpus, least - 1, -1)

    def _put(self, row: int, gpus: int, gpu_type: int, scratch: Free) -> Allocation | None:
        for size in self._sizes(row, gpus):
            request = self._request(row, size, gpu_type)
            allocation = self.policy.place.put(request, scratch, self.snapshot.nodes, self.snapshot.seed)
            if allocation is not None:
                return allocation
        return None

    def _select(self, ranked: Ints, demand: Ints) -> tuple[Mask, Ints | None]:
        """Choose who runs, and on a mixed cluster on which GPU type (-1: on what it holds, or on any).

        A size that no GPU type has room for is cut in `demand`.
        """
        if len(self.snapshot.nodes.types) == 1:
            return greedy(demand, self.snapshot.up_gpus) & (demand > 0), None
        pools = Pools(self.snapshot)
        chosen: Mask = np.zeros(ranked.size, dtype=np.bool_)
        types: Ints = np.full(ranked.size, -1, dtype=np.int64)
        for i, (row, gpus) in enumerate(zip(ranked.tolist(), demand.tolist(), strict=True)):
            for size in self._sizes(row, gpus):
                found = pools.take(row, size)
                if found is not None:
                    chosen[i], types[i], demand[i] = True, found, size
                    break
        return chosen, types

    def _release(self, changed: Mask) -> tuple[Free, Changes]:
        """Give back what every running job holds that does not stay as it is."""
        scratch = self.snapshot.free.copy()
        changes: Changes = {}
        for row in np.flatnonzero(changed & (self.held > 0)).tolist():
            job_id = self.table.jobs[row].job_id
            scratch.give(self.snapshot.nodes.index, self.snapshot.running[job_id].shares)
            changes[job_id] = None
        return scratch, changes

    def _request(self, row: int, gpus: int, gpu_type: int) -> Request:
        constraint = int(self.table.data[C.TYPE, row])
        return self.policy.tune.request(self.table.jobs[row], gpus, constraint if gpu_type < 0 else gpu_type)

    def _alike(self, ranked: Ints, demand: Ints, i: int) -> Mask:
        """A job that found no place, and later ones that ask for the same: they would not find one either."""
        job = self.table.jobs[ranked[i]]
        type_ = self.table.column(C.TYPE)[ranked]
        alike: Mask = (demand == demand[i]) & (type_ == type_[i]) & (self.held[ranked] == 0)
        if job.cpus is not None or job.memory_gb is not None:
            alike[:] = False
        alike[:i] = False
        alike[i] = True
        return alike


@dataclass(frozen=True, slots=True)
class _Attempt:
    changes: Changes
    rows: Ints
    failed: Mask
