"""Place stage: as few nodes as possible, best fit, one node if any has room."""

from __future__ import annotations

from typing import Literal

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.policy.place.fit import allocate, by_type, one_node, usable_gpus
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.room import (
    Room,
    emptiest_nodes,
    fewest_nodes,
    within,
)


class Pack(Place):
    """Fewest nodes, best fit. `consolidate=require`: wait rather than span more nodes than necessary."""

    def __init__(self, consolidate: Literal["prefer", "require"] = "prefer") -> None:
        self.require = consolidate == "require"

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang."""
        _, gpus, _, cpus, memory_gb, servers, _, _ = request
        if free.total < gpus:
            return None
        if cpus is None and memory_gb is None and not servers and free.plain and len(nodes.types) == 1:
            for level in free.levels[gpus:]:
                if level:  # the best fit; the rest comes to the same, but takes longer
                    return nodes.proportional[(level & -level).bit_length() - 1, gpus]
        if request.server is not None:
            together = one_node(request, free, nodes)
            if together is not None:
                return Allocation(tuple(together))
        for usable in by_type(request, free, nodes):
            parts = fewest_nodes(usable, request.gpus)
            if parts is not None and not (self.require and self._scattered(request, nodes, len(parts))):
                allocation = allocate(request, parts, free, nodes)
                if allocation is None and not self.require:  # leave more room for servers elsewhere
                    allocation = allocate(request, emptiest_nodes(usable, request.gpus) or parts, free, nodes)
                if allocation is not None:
                    return allocation
        return None

    def find_by_type(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Put the workers of each GPU type on the fewest nodes, the servers of all beside them."""
        usable, parts = usable_gpus(request, free, nodes), list[tuple[int, int]]()
        for part in request.of_each_type():
            found = fewest_nodes(within(usable, nodes.mask_of_type[part.gpu_type]), part.gpus)
            if found is None or (self.require and self._scattered(part, nodes, len(found))):
                return None
            parts += found
        return allocate(request, parts, free, nodes)

    def _scattered(self, request: Request, nodes: NodeTable, spanned: int) -> bool:
        """Whether the gang would need fewer nodes in an empty cluster."""
        if spanned == 1:
            return False
        empty = by_type(request, Room.all_of(nodes), nodes)
        return any(len(fewest_nodes(usable, request.gpus) or ()) < spanned for usable in empty)
