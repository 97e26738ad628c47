"""Place stage: workers on as many nodes as possible, the emptiest first."""

from __future__ import annotations

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.policy.place.fit import allocate, by_type
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.room import Room, emptiest_nodes


class Spread(Place):
    """Each worker goes to the node with the most free GPUs."""

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang, worker by worker."""
        for usable in by_type(request, free, nodes):
            parts = emptiest_nodes(usable, request.gpus)
            if parts is not None:
                return allocate(request, parts, free, nodes)
        return None
