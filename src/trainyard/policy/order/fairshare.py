"""Order: fair share, by what tenants and users have used lately."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.limits import MAX_S, SHORTEST_SLICE_S
from trainyard.model.tolerance import PART, SHORT_SECONDS
from trainyard.policy.bounds import within
from trainyard.policy.order.standing import Standing, by_account, held_after
from trainyard.policy.stages import Changes, Order
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot
from trainyard.state.usage import WEEK_S, Name, names_of

C = Column
SLICE_S = 600.0
RESTARTS = 10  # a slice is never shorter than so many restarts


class FairShare(Order):
    """Who has used least, by weight, goes first: tenants, then users of a tenant, then by submission.

    Half of what was used is forgotten in a half-life. A job that has just been given GPUs keeps its place for
    a slice of time: else those that are even would take turns at every moment.
    """

    half_life_s: float
    among_waiting = False  # whether it matters who of those that wait comes first

    def __init__(self, half_life_s: float = WEEK_S, slice_s: float = SLICE_S) -> None:
        for name, value in (("half_life_s", half_life_s), ("slice_s", slice_s)):
            if value <= 0:
                raise InputError(f"{name} is {value:g}; it must be above 0")
            within(name, value, SHORTEST_SLICE_S, MAX_S)
        self.half_life_s = half_life_s
        self.slice_s = slice_s

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank all active jobs."""
        return self.ranked(snapshot, np.arange(len(snapshot.table)))

    def ranked(self, snapshot: Snapshot, rows: Ints) -> Ints:
        """Rank some of the active jobs."""
        tenant, user = Standing(snapshot, self.half_life_s).columns()
        seq, waits = snapshot.table.column(C.SEQ), ~self._settling(snapshot)
        ranked: Ints = rows[np.lexsort((seq[rows], user[rows], tenant[rows], waits[rows]))]
        return ranked

    def _settling(self, snapshot: Snapshot) -> Mask:
        """Jobs whose slice is not over."""
        ends: Floats = np.array([self._slice_end_s(snapshot, record) for record in snapshot.table.records])
        return ends > snapshot.now_s + PART * self.slice_s

    def _slice_end_s(self, snapshot: Snapshot, record: Record) -> float:
        if not record.given:
            return -inf
        return record.given_since + self._slice_of(snapshot, record)

    def _slice_of(self, snapshot: Snapshot, record: Record) -> float:
        return max(self.slice_s, RESTARTS * snapshot.restart_cost(record.job))

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when somebody who waits has used no more than somebody whose slice is over."""
        gpus, now_s = held_after(snapshot, changes), snapshot.now_s
        ends: dict[Name, list[float]] = {}  # slices of those that run
        waiting: dict[Name, None] = {}
        for record in snapshot.table.records:
            end = self._slice_end_s(snapshot, record)
            if gpus[record.job_id] and record.job_id in changes:
                end = now_s + self._slice_of(snapshot, record)
            for name in names_of(record.job):
                if not gpus[record.job_id]:
                    waiting[name] = None
                if gpus[record.job_id] or self.among_waiting:
                    ends.setdefault(name, []).append(end if gpus[record.job_id] else -inf)
        return self._next_s(snapshot, gpus, ends, waiting)

    def _next_s(
        self,
        snapshot: Snapshot,
        gpus: dict[str, int],
        ends: dict[Name, list[float]],
        waiting: dict[Name, None],
    ) -> float:
        standing, now_s, next_s = Standing(snapshot, self.half_life_s), snapshot.now_s, inf
        held = by_account((record.job, gpus[record.job_id]) for record in snapshot.table.records)
        for runs, waits in product(ends, waiting):
            if runs == waits or len(runs) != len(waits) or (len(runs) > 1 and runs[0] != waits[0]):
                continue
            even_s = standing.overtakes_s(waits, runs, held)
            if even_s > now_s and min(ends[runs]) <= even_s:
                next_s = min(next_s, even_s + SHORT_SECONDS)
            next_s = min([next_s, *(end for end in ends[runs] if end > max(now_s, even_s))])
        return next_s
