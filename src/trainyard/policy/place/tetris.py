"""Place stage: Tetris packing (Grandl et al., SIGCOMM'14).

A gang goes to the node whose free resources point most nearly where its demand does: the largest dot product
of demand and what is free, both as parts of the node. A gang that no node can hold is packed on the fewest.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import NodeTable
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.place.fit import allocate, by_type
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.room import Room, counts_of, fewest_nodes


class Tetris(Place):
    """Where demand and free resources are best aligned."""

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang."""
        for usable in by_type(request, free, nodes):
            fit = [node for node, gpus in sorted(counts_of(usable).items()) if gpus >= request.gpus]
            if fit:
                among = np.array(fit)
                best = int(among[alignment(request, free, nodes, among).argmax()])
                return allocate(request, [(best, request.gpus)], free, nodes)
            parts = fewest_nodes(usable, request.gpus)
            if parts is not None:
                return allocate(request, parts, free, nodes)
        return None


def alignment(request: Request, free: Room, nodes: NodeTable, among: Ints) -> Floats:
    """Dot product of what one GPU of the job needs and what is free, as parts of each node."""
    gpus = np.array(free.gpus, dtype=np.float64)[among]
    score: Floats = gpus / np.square(nodes.gpus[among])
    for asked, each, all_, left in (
        (request.cpus_per_gpu, nodes.cpus_per_gpu, nodes.cpus, free.cpus),
        (request.memory_per_gpu, nodes.memory_per_gpu, nodes.memory_gb, free.memory_gb),
    ):
        need = each[among] if asked is None else asked
        # Where only proportional shares count, what is free goes with the free GPUs.
        there = gpus * each[among] if free.plain else np.array(left)[among]
        score += need * there / np.square(np.maximum(all_[among], CPUS_GB))
    return score
