"""Room: what is free on each node; and nodes grouped by how many GPUs of them can be used, as bit masks.

`levels[f]` has bit i set if node i has f usable GPUs. Looking for a node is then a handful of operations on
whole numbers, however many nodes there are.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Ints
from trainyard.model.cluster import NodeTable

Levels = list[int]
Parts = list[tuple[int, int]]  # (node, GPUs)


def levels_of(counts: Ints) -> Levels:
    """Group nodes by count."""
    return [mask_of(counts == f) for f in range(int(counts.max(initial=0)) + 1)]


def mask_of(chosen: np.typing.NDArray[np.bool_]) -> int:
    """Return a whole number with bit i set where entry i is true."""
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def first(mask: int) -> int:
    """Index of the lowest bit."""
    return (mask & -mask).bit_length() - 1


def total(levels: Levels) -> int:
    """All usable GPUs."""
    return sum([f * mask.bit_count() for f, mask in enumerate(levels)])


def within(levels: Levels, mask: int) -> Levels:
    """Keep only some nodes."""
    return [level & mask for level in levels]


def best_fit(levels: Levels, gpus: int) -> int | None:
    """Return the node with the fewest usable GPUs that still hold the whole gang; ties: the first node."""
    for level in levels[gpus:]:
        if level:
            return (level & -level).bit_length() - 1
    return None


def fewest_nodes(levels: Levels, gpus: int) -> Parts | None:
    """Fill the nodes with the most usable GPUs, and put the rest where it fits best."""
    parts: Parts = []
    top = len(levels) - 1
    while (one := best_fit(levels, gpus)) is None:
        while top and not levels[top]:
            top -= 1
        if not top:
            return None
        if not parts:
            levels = levels.copy()
        i = first(levels[top])
        levels[top] ^= 1 << i
        parts.append((i, top))
        gpus -= top
    return [*parts, (one, gpus)]


def emptiest_nodes(levels: Levels, gpus: int) -> Parts | None:
    """Put each worker on the node with the most usable GPUs."""
    levels = levels.copy()
    got: dict[int, int] = {}
    top = len(levels) - 1
    for _ in range(gpus):
        while top and not levels[top]:
            top -= 1
        if not top:
            return None
        i = first(levels[top])
        levels[top] ^= 1 << i
        levels[top - 1] |= 1 << i
        got[i] = got.get(i, 0) + 1
    return sorted(got.items())


def counts_of(levels: Levels) -> dict[int, int]:
    """Return node -> usable GPUs for all nodes that have some."""
    counts: dict[int, int] = {}
    for f, mask in enumerate(levels[1:], 1):
        while mask:
            counts[first(mask)] = f
            mask &= mask - 1
    return counts


class Room:
    """Free GPUs, CPUs and memory per node; nodes that are down have none."""

    __slots__ = ("cpus", "gpus", "levels", "memory_gb", "plain", "total")

    def __init__(
        self, gpus: list[int], cpus: list[float], memory_gb: list[float], levels: Levels | None = None
    ) -> None:
        self.gpus = gpus
        self.cpus = cpus
        self.memory_gb = memory_gb
        self.total = sum(gpus)
        self.plain = True  # only GPU-proportional shares are out: free GPUs imply free CPUs and memory
        self.levels = levels_of(np.array(gpus, dtype=np.int64)) if levels is None else levels

    @classmethod
    def all_of(cls, nodes: NodeTable) -> Room:
        """Everything free."""
        return cls(nodes.gpus.tolist(), nodes.cpus.tolist(), nodes.memory_gb.tolist())

    def copy(self) -> Room:
        """Return scratch space for trying placements."""
        twin = Room(self.gpus.copy(), self.cpus.copy(), self.memory_gb.copy(), self.levels.copy())
        twin.plain = self.plain
        return twin

    # Written out three times: calling one for the other takes longer than what it does.

    def take(self, nodes: NodeTable, allocation: Allocation) -> None:
        """Debit what an allocation holds."""
        all_gpus, levels = self.gpus, self.levels
        for i, gpus, cpus, memory_gb in allocation.plain or nodes.parts(allocation):
            had, bit = all_gpus[i], 1 << i
            all_gpus[i] = has = had - gpus
            levels[had] ^= bit
            levels[has] ^= bit
            self.cpus[i] -= cpus
            self.memory_gb[i] -= memory_gb
        self.total -= allocation.gpus

    def give(self, nodes: NodeTable, allocation: Allocation) -> None:
        """Credit what an allocation held."""
        all_gpus, levels = self.gpus, self.levels
        for i, gpus, cpus, memory_gb in allocation.plain or nodes.parts(allocation):
            had, bit = all_gpus[i], 1 << i
            all_gpus[i] = has = had + gpus
            levels[had] ^= bit
            levels[has] ^= bit
            self.cpus[i] += cpus
            self.memory_gb[i] += memory_gb
        self.total += allocation.gpus

    def add(self, i: int, gpus: int, cpus: float, memory_gb: float) -> None:
        """Change what is free on one node."""
        all_gpus, levels, bit = self.gpus, self.levels, 1 << i
        had = all_gpus[i]
        all_gpus[i] = has = had + gpus
        levels[had] ^= bit
        levels[has] ^= bit
        self.cpus[i] += cpus
        self.memory_gb[i] += memory_gb
        self.total += gpus

    def restore(self, i: int, gpus: int, cpus: float, memory_gb: float) -> None:
        """Set what is free on one node, as it was before."""
        had, levels, bit = self.gpus[i], self.levels, 1 << i
        levels[had] ^= bit
        levels[gpus] ^= bit
        self.gpus[i] = gpus
        self.cpus[i] = cpus
        self.memory_gb[i] = memory_gb
        self.total += gpus - had
