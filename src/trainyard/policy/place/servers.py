"""Where parameter servers sit: evenly beside their workers, or on other nodes if there is no room there."""

from __future__ import annotations

from itertools import accumulate, chain, pairwise

import numpy as np

from trainyard.model.allocation import Share
from trainyard.model.arrays import Floats
from trainyard.model.cluster import NodeTable
from trainyard.model.profile import Demand
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.request import Request
from trainyard.state.room import Parts, Room

MANY = 1_000_000  # tasks on a node: more than fit


def portions(free: list[float], each: float) -> Floats:
    """How many times, not rounded, this amount is free on each node; an amount of 0 always is."""
    return (np.array(free) + CPUS_GB) / each if each else np.full(len(free), float(MANY))


def with_servers(request: Request, workers: list[Share], free: Room, nodes: NodeTable) -> list[Share] | None:
    """Return what a job holds on each node, servers included; None if there is no room for these."""
    demand = request.server
    beside = evenly(request.servers, [share.gpus for share in workers])
    if demand is None:
        return [share._replace(servers=count) for share, count in zip(workers, beside, strict=True)]
    held, seats, more = dict[int, Share](), dict[int, int](), dict[int, int]()
    for share, count in zip(workers, beside, strict=True):
        i = nodes.index[share.node]
        room = _room(demand, free.cpus[i] - share.cpus, free.memory_gb[i] - share.memory_gb)
        held[i], seats[i] = share, min(count, room)
        more[i] = room - seats[i]
    for i, count in _rest(request.servers - sum(seats.values()), demand, more, free):
        seats[i] = seats.get(i, 0) + count
    if sum(seats.values()) < request.servers:
        return None
    return [
        _add(held.get(i) or Share(nodes.ids[i], 0, 0, 0.0, 0.0), count, demand) for i, count in seats.items()
    ]


def evenly(servers: int, workers: list[int]) -> list[int]:
    """Split servers over nodes in proportion to the workers there."""
    each = servers / sum(workers)
    ends = [round(upto * each) for upto in accumulate(workers, initial=0)]
    return [end - begin for begin, end in pairwise(ends)]


def _room(demand: Demand, cpus: float, memory_gb: float) -> int:
    """Servers for which these CPUs and this memory would do."""
    by_cpu = (cpus + CPUS_GB) / demand.cpus if demand.cpus else MANY
    by_memory = (memory_gb + CPUS_GB) / demand.memory_gb if demand.memory_gb else MANY
    return int(max(min(by_cpu, by_memory), 0.0))


def _rest(servers: int, demand: Demand, more: dict[int, int], free: Room) -> Parts:
    """Seats for the servers that found none: on the workers' nodes, then where GPUs need the CPUs least."""
    if not servers:
        return []
    room = np.minimum(portions(free.cpus, demand.cpus), portions(free.memory_gb, demand.memory_gb))
    room = room.astype(np.int64)
    others = (room > 0).nonzero()[0]
    others = others[np.array(free.gpus)[others].argsort(kind="stable")]
    elsewhere = ((i, int(room[i])) for i in others.tolist() if i not in more)
    parts: Parts = []
    for i, most in chain(more.items(), elsewhere):
        count = min(servers, most)
        if count > 0:
            parts.append((i, count))
            servers -= count
        if not servers:
            break
    return parts


def _add(share: Share, servers: int, demand: Demand) -> Share:
    node, gpus, _, cpus, memory_gb = share
    return Share(node, gpus, servers, cpus + servers * demand.cpus, memory_gb + servers * demand.memory_gb)
