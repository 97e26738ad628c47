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

    def at(self, i: int) -> tuple[int, float, float]:
        """GPUs, CPUs and GB that nobody holds of one node."""
        return self.gpus[i], self.cpus[i], self.memory_gb[i]

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

    def append(self, gpus: int, cpus: float, memory_gb: float) -> None:
        """A node joins, the last one, with all of this free."""
        bit = 1 << len(self.gpus)
        self.gpus.append(gpus)
        self.cpus.append(cpus)
        self.memory_gb.append(memory_gb)
        self.levels.extend([0] * (gpus + 1 - len(self.levels)))
        self.levels[gpus] |= bit
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


Amount = tuple[int, float, float]  # GPUs, CPUs and GB of memory


class PartlyClosed(Room):
    """A room some of whose nodes nobody may begin to use: what is free there does not show.

    Who holds something there may keep it. A room without such nodes is a plain `Room`, which is quicker.
    """

    __slots__ = ("closed",)

    def __init__(
        self, gpus: list[int], cpus: list[float], memory_gb: list[float], levels: Levels | None = None
    ) -> None:
        super().__init__(gpus, cpus, memory_gb, levels)
        self.closed: dict[int, Amount] = {}  # what nobody holds of a closed node

    @classmethod
    def like(cls, room: Room) -> PartlyClosed:
        """Return the same room, in which nodes can be closed."""
        twin = cls(room.gpus, room.cpus, room.memory_gb, room.levels)
        twin.plain = room.plain
        return twin

    def copy(self) -> PartlyClosed:
        """Return scratch space for trying placements."""
        twin = PartlyClosed.like(super().copy())
        twin.closed = self.closed.copy()
        return twin

    def close(self, i: int) -> None:
        """Hide what is free of a node."""
        if i not in self.closed:
            free = super().at(i)
            super().restore(i, 0, 0.0, 0.0)
            self.closed[i] = free

    def open(self, i: int) -> None:
        """Show again what is free of a node."""
        free = self.closed.pop(i, None)
        if free is not None:
            gpus, cpus, memory_gb = free
            super().restore(i, gpus, cpus, memory_gb)

    def at(self, i: int) -> Amount:
        """GPUs, CPUs and GB that nobody holds of one node."""
        return self.closed[i] if i in self.closed else super().at(i)

    def add(self, i: int, gpus: int, cpus: float, memory_gb: float) -> None:
        """Change what is free on one node."""
        had = self.closed.get(i)
        if had is None:
            super().add(i, gpus, cpus, memory_gb)
        else:
            self.closed[i] = (had[0] + gpus, had[1] + cpus, had[2] + memory_gb)

    def restore(self, i: int, gpus: int, cpus: float, memory_gb: float) -> None:
        """Set what is free on one node, as it was before."""
        if i in self.closed:
            self.closed[i] = (gpus, cpus, memory_gb)
        else:
            super().restore(i, gpus, cpus, memory_gb)

    def take(self, nodes: NodeTable, allocation: Allocation) -> None:
        """Debit what an allocation holds."""
        for i, gpus, cpus, memory_gb in allocation.plain or nodes.parts(allocation):
            self.add(i, -gpus, -cpus, -memory_gb)

    def give(self, nodes: NodeTable, allocation: Allocation) -> None:
        """Credit what an allocation held."""
        for i, gpus, cpus, memory_gb in allocation.plain or nodes.parts(allocation):
            self.add(i, gpus, cpus, memory_gb)
