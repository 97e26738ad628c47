"""Where parameter servers sit: evenly beside their workers, or on other nodes if there is no room there."""

from __future__ import annotations

from itertools import chain

import numpy as np

from trainyard.model.allocation import Share
from trainyard.model.cluster import Ints, NodeTable
from trainyard.model.profile import Demand
from trainyard.policy.levels import Parts
from trainyard.policy.snapshot import Free
from trainyard.policy.stages import Request

EPSILON = 1e-6  # CPUs and gigabytes: far below what anybody asks for, far above rounding


def with_servers(request: Request, workers: list[Share], free: Free, nodes: NodeTable) -> list[Share] | None:
    """Return what a job holds on each node, servers included; None if there is no room for these."""
    demand = request.server
    seats = dict.fromkeys([nodes.index[share.node] for share in workers], 0)
    for i, count in zip(seats, evenly(request.servers, [share.gpus for share in workers]), strict=True):
        seats[i] = count
    if demand is None:
        return [s._replace(servers=count) for s, count in zip(workers, seats.values(), strict=True)]
    room = _room(demand, workers, free, nodes)
    for i, count in seats.items():
        seats[i] = min(count, int(room[i]))
    for i, count in _rest(request.servers - sum(seats.values()), seats, room, free):
        seats[i] = seats.get(i, 0) + count
    if sum(seats.values()) < request.servers:
        return None
    held = {nodes.index[share.node]: share for share in workers}
    return [
        _add(held.get(i, Share(nodes.ids[i], 0, 0, 0.0, 0.0)), count, demand) for i, count in seats.items()
    ]


def evenly(servers: int, workers: list[int]) -> list[int]:
    """Split servers over nodes in proportion to the workers there."""
    if len(workers) == 1:
        return [servers]
    ends = np.rint(np.cumsum(workers) * (servers / sum(workers))).astype(int)
    split: list[int] = np.diff(ends, prepend=0).tolist()
    return split


def _room(demand: Demand, workers: list[Share], free: Free, nodes: NodeTable) -> Ints:
    """Servers that each node could take beside these workers."""
    cpus, memory_gb = np.array(free.cpus), np.array(free.memory_gb)
    for share in workers:
        i = nodes.index[share.node]
        cpus[i] -= share.cpus
        memory_gb[i] -= share.memory_gb
    by_cpu = (cpus + EPSILON) / max(demand.cpus, EPSILON)
    by_memory = (memory_gb + EPSILON) / max(demand.memory_gb, EPSILON)
    return np.floor(np.maximum(np.minimum(by_cpu, by_memory), 0.0)).astype(np.int64)


def _rest(servers: int, seats: dict[int, int], room: Ints, free: Free) -> Parts:
    """Seats for the servers that found none: on the workers' nodes, then where GPUs need the CPUs least."""
    if not servers:
        return []
    others = np.flatnonzero(room)
    others = others[np.argsort(np.array(free.gpus)[others], kind="stable")]
    parts: Parts = []
    for i in chain(seats, (i for i in others.tolist() if i not in seats)):
        count = min(servers, int(room[i]) - seats.get(i, 0))
        if count > 0:
            parts.append((i, count))
            servers -= count
        if not servers:
            break
    return parts


def _add(share: Share, servers: int, demand: Demand) -> Share:
    node, gpus, _, cpus, memory_gb = share
    return Share(node, gpus, servers, cpus + servers * demand.cpus, memory_gb + servers * demand.memory_gb)
