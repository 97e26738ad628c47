"""Which GPUs of its nodes a job holds: the core chooses them, or the engine says which it chose."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.model.indices import GpuIndices

Taken = dict[str, tuple[int, ...]]  # indices by node


class Seats:
    """The GPUs of every job that has processes, by index."""

    def __init__(self, nodes: NodeTable) -> None:
        self.free = GpuIndices(dict(zip(nodes.ids, nodes.gpus.tolist(), strict=True)))
        self.of: dict[str, Taken] = {}  # by job

    def take(self, job_id: str, allocation: Allocation) -> Taken:
        """Choose the lowest free ones for a job that starts."""
        taken = {node: self.free.take(node, gpus) for node, gpus in allocation.workers if gpus}
        self.of[job_id] = taken
        return taken

    def correct(self, job_id: str, chosen: Mapping[str, tuple[int, ...]]) -> bool:
        """Take in what the engine chose instead; False, and nothing changed, if that cannot be."""
        before = self.of[job_id]
        if {node: len(indices) for node, indices in chosen.items()} != {n: len(i) for n, i in before.items()}:
            return False
        for node, indices in before.items():
            self.free.give_back(node, indices)
        fits = all(set(indices) <= set(self.free.free(node)) for node, indices in chosen.items())
        fits = fits and all(len(set(indices)) == len(indices) for indices in chosen.values())
        taken = {node: tuple(indices) for node, indices in chosen.items()} if fits else before
        for node, indices in taken.items():
            self.free.claim(node, indices)
        self.of[job_id] = taken
        return fits

    def copy(self) -> Seats:
        """Return an independent copy."""
        return deepcopy(self)

    def give_back(self, job_id: str) -> None:
        """The processes of a job are gone."""
        for node, indices in self.of.pop(job_id, {}).items():
            self.free.give_back(node, indices)

    def give_back_on(self, job_id: str, node: str) -> None:
        """The processes of a job are gone from one node."""
        held = self.of[job_id]
        self.free.give_back(node, held.get(node, ()))
        self.of[job_id] = {other: indices for other, indices in held.items() if other != node}

    def holder(self, node: str, index: int) -> str | None:
        """Return the job that holds one GPU."""
        return next((job_id for job_id, taken in self.of.items() if index in taken.get(node, ())), None)
