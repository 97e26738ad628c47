"""Chooser for several GPU types: down the ranking, each job takes GPUs of one type if it can."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.model.cluster import by_speed
from trainyard.policy.choose.selection import Choice, Selection
from trainyard.policy.choose.sizes import sizes_to_try
from trainyard.policy.stages import Shapes
from trainyard.state.capacity import held_by_type, up_by_type
from trainyard.state.snapshot import Snapshot


def from_pools(selection: Selection, ranked: Ints, shapes: Shapes) -> Choice:
    """Walk down the ranking; a size that no GPU type has room for is cut."""
    pools, stay, smaller = Pools(selection.snapshot), selection.stay, selection.policy.size.smaller
    target = np.zeros(selection.given.size)
    types: Ints = np.full(target.size, -1, dtype=np.int64)
    rows: list[int] = []
    for row, gpus in zip(ranked.tolist(), selection.demand(ranked, shapes.gpus).tolist(), strict=True):
        if stay[row] and pools.keep(row, int(gpus)):  # else another might have to stop
            rows.append(row)
            target[row] = gpus
            continue
        for size in sizes_to_try(selection.table.jobs[row], int(gpus), smaller):
            found = pools.take(row, size)
            if found is not None:
                rows.append(row)
                types[row], target[row] = found, size
                break
    chosen = np.array(rows, dtype=np.int64)
    return Choice(chosen, target, types, selection.servers(ranked, shapes.servers))


class Pools:
    """Walks down a ranking on a cluster with several GPU types: each job takes GPUs of one type if it can."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        held = held_by_type(snapshot)
        self.held: list[list[int]] = held.tolist()
        self.left: list[int] = up_by_type(snapshot).tolist()
        self.biggest = max(self.left)
        self.order = by_speed(snapshot.nodes)

    def take(self, row: int, gpus: int) -> int | None:
        """Return the GPU type the job gets (-1: what it holds, or a mixture), or None if it does not fit."""
        better = self._better(row, gpus)
        if better is not None:
            return self._from(better, gpus)
        if self.keep(row, gpus):
            return -1
        constraint = self.snapshot.table.records[row].type_index
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
        record = snapshot.table.records[row]
        rate = record.rate
        if not rate > 0:
            return None
        left = record.remaining - rate * max(snapshot.now_s - record.since, 0.0)
        at_most_s = left / rate - snapshot.restart_cost(job)
        for type_ in self.order:
            if self.held[row][type_] == gpus:
                return None  # the rest is slower
            if self.left[type_] >= gpus:
                speed = float(snapshot.speed.curve(job, type_, gpus)[gpus])
                if speed > 0 and left / speed < at_most_s:
                    return type_
        return None

    def keep(self, row: int, gpus: int) -> bool:
        """Leave a job the GPUs that it holds, if it should have as many and they are still there."""
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
