"""Place stage: as few nodes as possible, best fit, one node if any has room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Ints, NodeTable
from trainyard.policy.select import by_speed
from trainyard.policy.snapshot import Free
from trainyard.policy.stages import Place, Request

FULL = np.iinfo(np.int64).max
EPSILON = 1e-6  # CPUs and gigabytes: far below what anybody asks for, far above rounding


def usable_gpus(request: Request, free: Free, nodes: NodeTable) -> Ints:
    """GPUs per node that this job could take, given the CPUs and memory that must go with each."""
    usable = free.gpus
    if not (free.plain and request.cpus_per_gpu is None and request.memory_per_gpu is None):
        cpus = nodes.cpus_per_gpu if request.cpus_per_gpu is None else max(request.cpus_per_gpu, EPSILON)
        memory = (
            nodes.memory_per_gpu if request.memory_per_gpu is None else max(request.memory_per_gpu, EPSILON)
        )
        by_cpu = np.floor((free.cpus + EPSILON) / np.maximum(cpus, EPSILON)).astype(np.int64)
        by_memory = np.floor((free.memory_gb + EPSILON) / np.maximum(memory, EPSILON)).astype(np.int64)
        usable = np.minimum(usable, np.minimum(by_cpu, by_memory))
    if request.gpu_type >= 0 and len(nodes.types) > 1:
        usable = np.where(nodes.type == request.gpu_type, usable, 0)
    return usable


def allocate(request: Request, parts: list[tuple[int, int]], free: Free, nodes: NodeTable) -> Allocation:
    """Turn (node index, GPUs) into an allocation and debit `free`."""
    shares = []
    for i, gpus in parts:
        cpus, memory = nodes.share_per_gpu[i]
        cpus = cpus if request.cpus_per_gpu is None else request.cpus_per_gpu
        memory = memory if request.memory_per_gpu is None else request.memory_per_gpu
        shares.append(Share(nodes.ids[i], gpus, gpus * request.servers_per_gpu, gpus * cpus, gpus * memory))
    allocation = Allocation(tuple(shares))
    free.take(nodes.index, allocation.shares)
    return allocation


def best_fit(usable: Ints, gpus: int) -> int | None:
    """Return the node with the fewest usable GPUs that still hold the whole gang; ties: the first node."""
    i = int(np.where(usable >= gpus, usable, FULL).argmin())
    return i if usable[i] >= gpus else None


def fewest_nodes(usable: Ints, gpus: int) -> list[tuple[int, int]]:
    """Fill the nodes with the most usable GPUs, and put the rest where it fits best; there must be enough."""
    order = np.argsort(-usable, kind="stable")
    filled = np.cumsum(usable[order])
    whole = int(np.searchsorted(filled, gpus))
    parts = [(int(i), int(usable[i])) for i in order[:whole]]
    rest = gpus - (int(filled[whole - 1]) if whole else 0)
    others = usable.copy()
    others[order[:whole]] = 0
    last = best_fit(others, rest)
    assert last is not None
    return [*parts, (last, rest)]


def by_type(request: Request, free: Free, nodes: NodeTable) -> Iterator[Ints]:
    """Yield usable GPUs per node, one GPU type at a time: the fastest with room for the whole gang first.

    Types are mixed only if no type alone could ever hold the gang.
    """
    usable = usable_gpus(request, free, nodes)
    if request.gpu_type >= 0 or len(nodes.types) == 1 or request.gpus > int(nodes.gpus_of_type.max()):
        if int(usable.sum()) >= request.gpus:
            yield usable
        return
    room = np.bincount(nodes.type, weights=usable, minlength=len(nodes.types))
    for type_ in by_speed(nodes):
        if room[type_] >= request.gpus:
            yield np.where(nodes.type == type_, usable, 0)


class Pack(Place):
    """Fewest nodes, best fit. `consolidate=require`: wait rather than span more nodes than necessary."""

    def __init__(self, consolidate: Literal["prefer", "require"] = "prefer") -> None:
        self.require = consolidate == "require"

    def put(self, request: Request, free: Free, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang."""
        if free.total < request.gpus:
            return None
        for usable in by_type(request, free, nodes):
            one = best_fit(usable, request.gpus)
            parts = [(one, request.gpus)] if one is not None else fewest_nodes(usable, request.gpus)
            if not self.require or len(parts) <= self._least_nodes(request, nodes):
                return allocate(request, parts, free, nodes)
        return None

    def _least_nodes(self, request: Request, nodes: NodeTable) -> int:
        """Nodes that the gang needs in an empty cluster."""
        empty = Free.all_of(nodes)
        return min(len(fewest_nodes(usable, request.gpus)) for usable in by_type(request, empty, nodes))
