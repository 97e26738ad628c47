"""Where a gang fits, given the CPUs and memory that each of its workers needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from trainyard.model.allocation import Allocation, Share
from trainyard.model.arrays import Floats
from trainyard.model.cluster import NodeTable, by_speed
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.place.servers import portions, with_servers
from trainyard.policy.request import Request
from trainyard.state.room import (
    Levels,
    Parts,
    Room,
    levels_of,
    total,
    within,
)


def usable_gpus(request: Request, free: Room, nodes: NodeTable) -> Levels:
    """GPUs per node that this job could take, given the CPUs and memory that must go with each."""
    if free.plain and request.cpus_per_gpu is None and request.memory_per_gpu is None:
        return free.levels
    room: Floats = np.array(free.gpus, dtype=np.float64)
    for own, share, left in (
        (request.cpus_per_gpu, nodes.cpus_per_gpu, free.cpus),
        (request.memory_per_gpu, nodes.memory_per_gpu, free.memory_gb),
    ):
        if own is None:
            np.minimum(room, (np.array(left) + CPUS_GB) / np.maximum(share, CPUS_GB), out=room)
        elif own:
            np.minimum(room, portions(left, own), out=room)
    return levels_of(room.astype(np.int64))


def by_type(request: Request, free: Room, nodes: NodeTable) -> Sequence[Levels]:
    """Return usable GPUs, one GPU type at a time: the fastest with room for the whole gang first.

    Types are mixed only if no type alone could ever hold the gang.
    """
    usable = usable_gpus(request, free, nodes)
    if len(nodes.types) == 1 or (request.gpu_type < 0 and request.gpus > int(nodes.gpus_of_type.max())):
        return (usable,)
    types = by_speed(nodes) if request.gpu_type < 0 else [request.gpu_type]
    of_types = [within(usable, nodes.mask_of_type[type_]) for type_ in types]
    return [of_type for of_type in of_types if total(of_type) >= request.gpus]


def allocate(request: Request, parts: Parts, free: Room, nodes: NodeTable) -> Allocation | None:
    """Turn (node, GPUs) into an allocation; None if its servers find no room."""
    if request.servers:
        shares = with_servers(request, worker_shares(request, parts, nodes), free, nodes)
        return None if shares is None else Allocation(tuple(shares))
    if request.cpus_per_gpu is None and request.memory_per_gpu is None:
        return nodes.plain(parts)
    return Allocation(tuple(worker_shares(request, parts, nodes)))


def worker_shares(request: Request, parts: Parts, nodes: NodeTable) -> list[Share]:
    """What the workers hold on each node."""
    own_cpus, own_memory = request.cpus_per_gpu, request.memory_per_gpu
    shares = []
    for i, gpus in parts:
        cpus, memory = nodes.share_per_gpu[i]
        cpus = gpus * (cpus if own_cpus is None else own_cpus)
        memory = gpus * (memory if own_memory is None else own_memory)
        shares.append(Share(nodes.ids[i], gpus, 0, cpus, memory))
    return shares


def one_node(request: Request, free: Room, nodes: NodeTable) -> list[Share] | None:
    """Put workers and servers on one node, the one with the fewest free GPUs that has room for all."""
    server, servers, gpus = request.server, request.servers, request.gpus
    if server is None or request.cpus_per_gpu is None or request.memory_per_gpu is None:
        return None
    cpus = gpus * request.cpus_per_gpu + servers * server.cpus
    memory_gb = gpus * request.memory_per_gpu + servers * server.memory_gb
    free_cpus, least_cpus = free.cpus, cpus - CPUS_GB
    free_memory, least_memory = free.memory_gb, memory_gb - CPUS_GB
    if nodes.cpus.max() < least_cpus or nodes.memory_gb.max() < least_memory:
        return None
    types = by_speed(nodes) if request.gpu_type < 0 else [request.gpu_type]
    for type_, level in product(types, free.levels[gpus:]):
        mask = level & nodes.mask_of_type[type_]
        while mask:
            lowest = mask & -mask
            i = lowest.bit_length() - 1
            if free_cpus[i] >= least_cpus and free_memory[i] >= least_memory:
                return [Share(nodes.ids[i], gpus, servers, cpus, memory_gb)]
            mask ^= lowest
    return None
