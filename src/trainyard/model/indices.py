"""Which GPUs of a node are whose, by index: the lowest free ones go first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainyard.errors import TrainyardError


class GpuIndices:
    """The GPUs of each node that are free and taken, as bits: whoever takes some keeps them."""

    __slots__ = ("_free", "_taken")

    def __init__(self, gpus: Mapping[str, int]) -> None:
        self._free = {node: (1 << count) - 1 for node, count in gpus.items()}
        self._taken = dict.fromkeys(gpus, 0)

    def take(self, node: str, count: int) -> tuple[int, ...]:
        """Take this many GPUs of a node, those of the lowest free indices, in order."""
        free = left = self._free[node]
        taken: list[int] = []
        for _ in range(count):
            if not left:
                raise TrainyardError(f"node {node} has {len(taken)} free GPUs, not {count}")
            lowest = left & -left
            taken.append(lowest.bit_length() - 1)
            left ^= lowest
        self._free[node] = left
        self._taken[node] |= free ^ left
        return tuple(taken)

    def give_back(self, node: str, indices: Iterable[int]) -> None:
        """Make taken GPUs free again."""
        back, taken = 0, self._taken[node]
        for index in indices:
            bit = 1 << index
            if not taken & bit:
                raise TrainyardError(f"GPU {index} of node {node} is not taken")
            taken ^= bit
            back |= bit
        self._taken[node] = taken
        self._free[node] |= back

    def free(self, node: str) -> tuple[int, ...]:
        """Return the indices of a node that are free, in order."""
        bits = self._free[node]
        return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)
