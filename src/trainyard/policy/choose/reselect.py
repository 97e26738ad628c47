"""Preemption and elastic sizes: choose anew who runs with how much, and change as little as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.choose.pools import Pools
from trainyard.policy.choose.walk import greedy
from trainyard.policy.draft import Draft
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.stages import Request, Stages
from trainyard.policy.tune.proportional import proportional_request
from trainyard.state.capacity import held_mix, up_by_type
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.room import Room

C = Column
# Sizes are chosen anew without the jobs that found no place, even at their smallest, if more stays idle.
IDLE = 0.05


class Reselection:
    """Preemptive or elastic: choose who runs with how much; jobs that keep their size keep their nodes."""

    def __init__(self, policy: Stages, draft: Draft) -> None:
        self.policy = policy
        self.draft = draft
        self.snapshot = snapshot = draft.view
        self.table = snapshot.table
        self.given = snapshot.table.column(C.GIVEN)
        self.fixed = isinstance(policy.size, Fixed)
        self.one_type = len(snapshot.nodes.types) == 1
        self.idle = 0  # GPUs that the last attempt left
        self._stay: Mask | None = None
        self.notes: Mapping[str, Any] = {}  # what the size stage says of the decision

    @property
    def stay(self) -> Mask:
        """Running jobs that may not be stopped; most decisions need not know."""
        if self._stay is None:
            self._stay = np.zeros(self.given.size, dtype=np.bool_)
        return self._stay

    def run_all(self) -> bool:
        """Draft that every job gets what it asked for; False, and nothing drafted, if one finds no place."""
        in_order = np.argsort(self.table.column(C.SEQ))
        if self._realise(_Choice(in_order, self.table.column(C.GPUS))) is None:
            return True
        self.draft.undo()
        return False

    def run(self) -> None:
        """Draft who starts, stops, moves or changes size."""
        barred: Mask | None = None
        while True:
            self.draft.undo()
            failed = self._realise(self._choose(barred))
            if not self.policy.order.preemptive and self._spare():
                continue
            if failed is None or not (self.fixed or self.idle > IDLE * self.snapshot.up_gpus):
                return
            barred = failed if barred is None else barred | failed

    def _spare(self) -> bool:
        """Remember running jobs that would be stopped, although none may be: they stay as they are."""
        changes = self.draft.changes
        stopped = [self.table.of[job_id].row for job_id, allocation in changes.items() if allocation is None]
        self.stay[stopped] = True
        return bool(stopped)

    def _choose(self, barred: Mask | None) -> _Choice:
        """Choose who runs, how big and, on a mixed cluster, on which GPU type."""
        if self.fixed and self.one_type and self.policy.order.preemptive:
            demand = self.table.column(C.GPUS)
            if barred is not None:
                demand = np.where(barred, 0.0, demand)
            rows = self.policy.order.choose(self.snapshot, demand)
            rows = rows if barred is None else rows[~barred[rows]]
            target = np.zeros(self.given.size)
            target[rows] = demand[rows]
            return _Choice(rows, target)
        ranked = self.ranked(barred)
        sizes = self.policy.size.sizes(self.snapshot, ranked)
        self.notes = {} if sizes is None else sizes.notes
        if sizes is not None and sizes.mix is not None:
            return self._mixed(ranked, sizes.mix)
        demand = self.table.column(C.GPUS)[ranked] if sizes is None else sizes.gpus.astype(np.float64)
        if not self.policy.order.preemptive:
            asked = (demand > 0) & ~self.stay[ranked]
            demand = np.where(asked, demand, self.given[ranked])
        target = np.zeros(self.given.size)
        servers: Ints | None = None
        if sizes is not None and sizes.servers is not None:
            servers = np.zeros(self.given.size, dtype=np.int64)
            servers[ranked] = sizes.servers
            servers[self.stay] = 0
        if self.one_type:
            fits = greedy(demand, self.snapshot.up_gpus) & (demand > 0)
            target[ranked[fits]] = demand[fits]
            return _Choice(ranked[fits], target, servers=servers)
        return self._from_pools(ranked, demand, target)._replace(servers=servers)

    def ranked(self, barred: Mask | None = None) -> Ints:
        """Return the rows that sizes are chosen for, first come first."""
        order, table = self.policy.order, self.table
        ranked = order.rank(self.snapshot)
        if not order.preemptive:
            running = self.given.nonzero()[0]
            first = np.lexsort((table.column(C.SEQ)[running], ~self.stay[running]))
            ranked = np.concatenate([running[first], ranked])
            if order.fill != "greedy":
                # A job behind one that does not fit, with all jobs at their smallest, waits too.
                least = np.where(self.stay[ranked], self.given[ranked], table.column(C.LEAST)[ranked])
                ranked = ranked[np.cumsum(least) <= self.snapshot.up_gpus]
        return ranked if barred is None else ranked[~barred[ranked]]

    def _mixed(self, ranked: Ints, mix: Ints) -> _Choice:
        """Take the workers by type as chosen; beside running jobs that stay, as far as there is room."""
        held = held_mix(self.snapshot)
        if not self.policy.order.preemptive:
            stays = (held[ranked].sum(axis=1) > 0) & ((mix.sum(axis=1) == 0) | self.stay[ranked])
            mix = np.where(stays[:, None], held[ranked], mix)
            left = up_by_type(self.snapshot)
            for j in np.argsort(~stays, kind="stable").tolist():
                mix[j] *= bool((mix[j] <= left).all())
                left -= mix[j]
        whole = np.zeros_like(held)
        whole[ranked] = mix
        target = whole.sum(axis=1).astype(np.float64)
        # The largest first: they are the hardest to put on one node.
        rows = ranked[
            np.argsort(-mix.max(axis=1, initial=0), kind="stable")[: np.count_nonzero(mix.any(axis=1))]
        ]
        return _Choice(rows, target, mix=whole, moves=(whole != held).any(axis=1))

    def _from_pools(self, ranked: Ints, demand: Floats, target: Floats) -> _Choice:
        """Walk down the ranking; a size that no GPU type has room for is cut."""
        pools = Pools(self.snapshot)
        types: Ints = np.full(target.size, -1, dtype=np.int64)
        rows: list[int] = []
        for row, gpus in zip(ranked.tolist(), demand.tolist(), strict=True):
            if self.stay[row] and pools.keep(row, int(gpus)):  # else another might have to stop
                rows.append(row)
                target[row] = gpus
                continue
            for size in self._sizes(row, int(gpus)):
                found = pools.take(row, size)
                if found is not None:
                    rows.append(row)
                    types[row], target[row] = found, size
                    break
        return _Choice(np.array(rows, dtype=np.int64), target, types)

    def _realise(self, choice: _Choice) -> Mask | None:
        """Place what is new or changed; return which jobs found no place, None if all did."""
        target, types = choice.target, choice.types
        changed = target != self.given
        if types is not None:
            changed |= types >= 0
        if choice.moves is not None:
            changed |= choice.moves
        if choice.servers is not None:
            changed |= self._other_servers(choice.servers)
        rows = changed.nonzero()[0]
        if not rows.size:
            return None
        for row in rows[self.given[rows] > 0].tolist():
            self.draft.release(self.table.jobs[row].job_id)
        if rows.size > 1:
            rows = choice.rows[changed[choice.rows]]
        failed: Mask | None = None
        for row in rows[target[rows] > 0].tolist():
            if failed is not None and failed[row]:
                continue
            type_ = -1 if types is None else int(types[row])
            servers = None if choice.servers is None else int(choice.servers[row])
            if choice.mix is None:
                found = self._put(row, int(target[row]), type_, servers)
            else:
                found = self._put_mix(row, tuple(choice.mix[row].tolist()))
            if not found:
                alike = self._alike(row)
                failed = alike if failed is None else failed | alike
        self.idle = self.draft.room.total
        return failed

    def _other_servers(self, servers: Ints) -> Mask:
        """Rows of jobs that run with other parameter servers than they should."""
        other: Mask = np.zeros(self.given.size, dtype=np.bool_)
        for row in servers.nonzero()[0].tolist():
            given = self.snapshot.target.get(self.table.jobs[row].job_id)
            other[row] = given is not None and given.servers != servers[row]
        return other

    def _sizes(self, row: int, gpus: int) -> Iterator[int]:
        """Sizes to try: the chosen one, then smaller ones that the size stage allows."""
        if gpus:
            yield gpus
            yield from self.policy.size.smaller(self.table.jobs[row], gpus)

    def _shapes(self, row: int, gpus: int, servers: int) -> Iterator[tuple[int, int]]:
        """Sizes to try with their servers; the smallest also with fewer of these."""
        some = servers
        for size in self._sizes(row, gpus):
            some = max(1, round(servers * size / gpus)) if servers else 0
            yield size, some
        while some > 1:
            some //= 2
            yield size, some

    def _put(self, row: int, gpus: int, gpu_type: int, servers: int | None = None) -> bool:
        """Place one job, on GPUs of the chosen type or, where only these lack CPUs or memory, of another."""
        record, policy, draft = self.table.records[row], self.policy, self.draft
        own_type = record.type_index
        types = (own_type,) if gpu_type in (-1, own_type) else (gpu_type, own_type)
        for size, some in self._shapes(row, gpus, servers or 0):
            for type_ in types:
                request = policy.tune.request(self.snapshot, record.job, size, type_)
                if some:
                    request = request._replace(servers=some)
                if draft.try_(policy.place, request) is not None:
                    return True
        return False

    def _put_mix(self, row: int, mix: tuple[int, ...]) -> bool:
        """Place one job whose workers of each type are settled."""
        record, draft, snap, best, speed = self.table.records[row], self.draft, self.snapshot, None, 0.0
        job = record.job
        for tried in self._cuts(mix, job.least_gpus, draft.room):
            request = self._request(record, tried)
            found = self.policy.place.find(request, draft.room, snap.nodes, snap.rules.seed)
            if found is not None and (rate := snap.speed.rate(job, found)) > speed:
                best, speed = (request, found), rate
        if best is None:
            return False
        draft.commit(*best)
        return True

    def _request(self, record: Record, mix: tuple[int, ...]) -> Request:
        """What to ask for; its share has to do for a job that wants more than these GPUs ever come with."""
        snap, policy, job = self.snapshot, self.policy, record.job
        request = policy.tune.request(snap, job, sum(mix), record.type_index)._replace(mix=mix)
        if policy.tune.by_gpus or policy.place.find(request, Room.all_of(snap.nodes), snap.nodes, 0):
            return request
        return proportional_request(job, sum(mix), record.type_index)._replace(mix=mix)

    def _cuts(self, mix: tuple[int, ...], least: int, room: Room) -> Iterator[tuple[int, ...]]:
        """The workers as settled; where these must span nodes, also as many as one node can take."""
        yield mix
        if self.policy.size.cuts and sum(n > 0 for n in mix) == 1:
            type_ = next(t for t, n in enumerate(mix) if n)
            mask = self.snapshot.nodes.mask_of_type[type_]
            most = max((f for f, level in enumerate(room.levels) if level & mask), default=0)
            if max(least, 1) <= most < mix[type_]:
                yield tuple(most if t == type_ else 0 for t in range(len(mix)))

    def _alike(self, row: int) -> Mask:
        """A job that found no place, and waiting ones that ask for the same: they would find none either."""
        job, wanted, type_ = self.table.jobs[row], self.table.column(C.GPUS), self.table.column(C.TYPE)
        alike: Mask = np.zeros(self.given.size, dtype=np.bool_)
        if self.fixed and not job.particular:
            alike = (wanted == wanted[row]) & (type_ == type_[row]) & (self.given == 0)
            if not self.policy.tune.by_gpus:
                content = job.content
                alike &= [other.content is content for other in self.table.jobs]
            for job_id in self.draft.changes:
                alike[self.table.of[job_id].row] = False  # placed before this one
        alike[row] = True
        return alike


class _Choice(NamedTuple):
    rows: Ints  # those that run, first come first
    target: Floats  # GPUs of every row of the table
    types: Ints | None = None  # GPU type of every row; -1: what it holds, or any
    servers: Ints | None = None  # parameter servers of every row; None: one for each worker
    mix: Ints | None = None  # workers of every row by type, where that is settled
    moves: Mask | None = None  # rows whose mix is not what they hold
