"""The smallest size of a job, wherever it fits: the last resort where no other way to place it does."""

from __future__ import annotations

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.place.fit import allocate, usable_gpus, worker_shares
from trainyard.policy.request import Request
from trainyard.policy.tune.proportional import proportional_request
from trainyard.state.room import Parts, Room, fewest_nodes, within


def anywhere(job: Job, gpu_type: int, free: Room, nodes: NodeTable) -> tuple[Request, Allocation] | None:
    """Return nodes for its fewest workers and one server, if any; None only if there is no room.

    GPU types are mixed, and the server sits on any node, also on one where no worker does.
    """
    request = proportional_request(job, job.least_gpus, gpu_type)
    server = request.server
    if server is None:
        parts = _workers(request, free, nodes)
        found = None if parts is None else allocate(request, parts, free, nodes)
        return None if found is None else (request, found)
    request = request._replace(servers=1)
    for at in range(len(nodes.ids)):
        if free.cpus[at] + CPUS_GB >= server.cpus and free.memory_gb[at] + CPUS_GB >= server.memory_gb:
            beside = free.copy()
            beside.add(at, 0, -server.cpus, -server.memory_gb)
            parts = _workers(request, beside, nodes)
            if parts is not None:
                return request, _with_server(request, parts, at, server, nodes)
    return None


def _workers(request: Request, free: Room, nodes: NodeTable) -> Parts | None:
    usable = usable_gpus(request, free, nodes)
    if request.gpu_type >= 0:
        usable = within(usable, nodes.mask_of_type[request.gpu_type])
    return fewest_nodes(usable, request.gpus)


def _with_server(request: Request, parts: Parts, at: int, server: Demand, nodes: NodeTable) -> Allocation:
    """The workers' shares, and the server's on this node."""
    shares = {share.node: share for share in worker_shares(request, parts, nodes)}
    its = Share(nodes.ids[at], 0, 1, server.cpus, server.memory_gb)
    had = shares.get(its.node)
    shares[its.node] = its if had is None else had.plus(its)
    return Allocation(tuple(shares.values()))
