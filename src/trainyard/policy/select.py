"""Which of the ranked jobs fit at once, by GPU count, the first ones first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainyard.model.cluster import Floats, Ints, NodeTable
from trainyard.policy.mixes import held_mix, up_by_type
from trainyard.policy.snapshot import Column, Snapshot

Mask = npt.NDArray[np.bool_]
NEAR = 128  # so many behind the first that does not fit are looked at one by one, which is quicker
Keys = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def greedy(demand: Floats, budget: float) -> Mask:
    """Walk down the ranking and take every job that still fits; skip those that do not."""
    taken: Mask = np.zeros(demand.size, dtype=np.bool_)
    picked, fits, _ = _walk(demand, budget)
    taken[:fits] = True
    taken[picked] = True
    return taken


def _walk(demand: Floats, budget: float) -> tuple[list[int], int, float]:
    """Return who is taken besides the first ones, how many first ones are, and what is left of the budget."""
    filled = demand.cumsum()
    fits = int(filled.searchsorted(budget, side="right"))
    left = budget - (float(filled[fits - 1]) if fits else 0.0)
    after = fits + 1  # behind the first job that does not fit
    picked: list[int] = []
    for i, wanted in enumerate(demand[after : after + NEAR].tolist(), after):
        if left <= 0:
            break
        if wanted <= left:
            picked.append(i)
            left -= wanted
    after += NEAR
    while left > 0 and after < demand.size:
        small = (demand[after:] <= left).nonzero()[0]
        if not small.size:
            break
        small += after
        filled = demand[small].cumsum()
        more = int(filled.searchsorted(left, side="right"))
        picked += small[:more].tolist()
        left -= float(filled[more - 1])
        if more == small.size:
            break
        after = int(small[more]) + 1
    return picked, fits, left


def by_key(key: Keys, seq: Floats, rows: Ints | None = None) -> Ints:
    """Return rows (by default all) by ascending key, ties in order of submission."""
    keys = key if rows is None else key[rows]
    order: Ints = keys.argsort()
    ranked = keys[order]
    tied = ranked[1:] == ranked[:-1]
    order = order if rows is None else rows[order]
    if np.count_nonzero(tied):
        again = np.zeros(order.size, dtype=np.bool_)
        again[1:] = tied
        again[:-1] |= tied
        some = order[again]  # only these need the second key
        order[again] = some[np.lexsort((seq[some], key[some]))]
    return order


def take_in_order(key: Keys, seq: Floats, demand: Floats, budget: float, about: int) -> Ints:
    """Return who is taken by a greedy walk along ascending keys.

    If there are many more rows than the `about` that will be taken, only the front is sorted: once the budget
    is spent, nobody asks who would be next.
    """
    near: Mask | None = None
    if key.size > 2 * about + 64:
        near = key <= np.partition(key, about)[about]
    front = by_key(key, seq, None if near is None else near.nonzero()[0])
    picked, fits, left = _walk(demand[front], budget)
    taken = [front[:fits], front[picked]]
    if near is not None and left > 0:
        others = ((demand <= left) & ~near).nonzero()[0]
        if others.size:
            behind = by_key(key, seq, others)
            picked, fits, _ = _walk(demand[behind], left)
            taken += [behind[:fits], behind[picked]]
    return np.concatenate(taken)


def by_speed(nodes: NodeTable) -> list[int]:
    """GPU types, fastest first."""
    return sorted(range(len(nodes.types)), key=lambda t: -float(nodes.speeds[t]))


class Pools:
    """Walks down a ranking on a cluster with several GPU types: each job takes GPUs of one type if it can."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        held = held_mix(snapshot)
        self.held: list[list[int]] = held.tolist()
        self.left: list[int] = up_by_type(snapshot, held).tolist()
        self.biggest = max(self.left)
        self.order = by_speed(snapshot.nodes)

    def take(self, row: int, gpus: int) -> int | None:
        """Return the GPU type the job gets (-1: what it holds, or a mixture), or None if it does not fit."""
        better = self._better(row, gpus)
        if better is not None:
            return self._from(better, gpus)
        if self._keep(row, gpus):
            return -1
        constraint = int(self.snapshot.table.data[Column.TYPE, row])
        if constraint >= 0:
            return self._from(constraint, gpus)
        for type_ in self.order:
            if self.left[type_] >= gpus:
                return self._from(type_, gpus)
        return self._mixture(gpus) if gpus > self.biggest else None

    def _from(self, type_: int, gpus: int) -> int | None:
        if self.left[type_] < gpus:
            return None
        self.left[type_] -= gpus
        return type_

    def _better(self, row: int, gpus: int) -> int | None:
        """Return a type with room where a job that runs with these GPUs would save more than its restart."""
        snapshot, job = self.snapshot, self.snapshot.table.jobs[row]
        if sum(self.held[row]) != gpus or job.gpu_type or job.particular:
            return None
        cells = snapshot.table.cells
        rate = cells[Column.RATE][row]
        if not rate > 0:
            return None
        left = cells[Column.REMAINING][row] - rate * max(snapshot.now_s - cells[Column.SINCE][row], 0.0)
        at_most_s = left / rate - snapshot.restart_cost(job)
        for type_ in self.order:
            if self.held[row][type_] == gpus:
                return None  # the rest is slower
            if self.left[type_] >= gpus:
                speed = float(snapshot.speed.curve(job, type_, gpus)[gpus])
                if speed > 0 and left / speed < at_most_s:
                    return type_
        return None

    def _keep(self, row: int, gpus: int) -> bool:
        held = self.held[row]
        if sum(held) != gpus or any(n > left for n, left in zip(held, self.left, strict=True)):
            return False
        self.left = [left - n for n, left in zip(held, self.left, strict=True)]
        return True

    def _mixture(self, gpus: int) -> int | None:
        if sum(self.left) < gpus:
            return None
        for type_ in self.order:
            part = min(gpus, self.left[type_])
            self.left[type_] -= part
            gpus -= part
        return -1
