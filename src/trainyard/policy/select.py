"""Which of the ranked jobs fit at once, by GPU count, the first ones first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainyard.model.cluster import Ints, NodeTable
from trainyard.policy.snapshot import Column, Snapshot

Mask = npt.NDArray[np.bool_]


def greedy(demand: Ints, budget: int) -> Mask:
    """Walk down the ranking and take every job that still fits; skip those that do not."""
    taken: Mask = np.zeros(demand.size, dtype=np.bool_)
    left = np.arange(demand.size)
    while left.size and budget > 0:
        filled = demand[left].cumsum()
        fits = int(filled.searchsorted(budget, side="right"))
        taken[left[:fits]] = True
        if fits == left.size:
            break
        budget -= int(filled[fits - 1]) if fits else 0
        left = left[fits + 1 :]
        left = left[demand[left] <= budget]
    return taken


def by_speed(nodes: NodeTable) -> list[int]:
    """GPU types, fastest first."""
    return sorted(range(len(nodes.types)), key=lambda t: -float(nodes.speeds[t]))


class Pools:
    """Walks down a ranking on a cluster with several GPU types: each job takes GPUs of one type if it can."""

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = snapshot.nodes
        self.snapshot = snapshot
        free = np.bincount(nodes.type, weights=snapshot.free.gpus, minlength=len(nodes.types))
        self.left: list[int] = free.astype(int).tolist()
        for allocation in snapshot.running.values():
            for type_, gpus in self._held(allocation.workers):
                self.left[type_] += gpus
        self.biggest = max(self.left)
        self.order = by_speed(nodes)

    def _held(self, workers: tuple[tuple[str, int], ...]) -> list[tuple[int, int]]:
        nodes = self.snapshot.nodes
        return [(int(nodes.type[nodes.index[node]]), gpus) for node, gpus in workers]

    def take(self, row: int, gpus: int) -> int | None:
        """Return the GPU type the job gets (-1: what it holds, or a mixture), or None if it does not fit."""
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

    def _keep(self, row: int, gpus: int) -> bool:
        allocation = self.snapshot.running.get(self.snapshot.table.jobs[row].job_id)
        if allocation is None or allocation.gpus != gpus:
            return False
        held = self._held(allocation.workers)
        need: dict[int, int] = {}
        for type_, count in held:
            need[type_] = need.get(type_, 0) + count
        if any(self.left[type_] < count for type_, count in need.items()):
            return False
        for type_, count in need.items():
            self.left[type_] -= count
        return True

    def _mixture(self, gpus: int) -> int | None:
        if sum(self.left) < gpus:
            return None
        for type_ in self.order:
            part = min(gpus, self.left[type_])
            self.left[type_] -= part
            gpus -= part
        return -1
