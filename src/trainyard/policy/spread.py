"""Place stage: workers on as many nodes as possible, the emptiest first."""

from __future__ import annotations

import heapq

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.policy.pack import allocate, by_type
from trainyard.policy.snapshot import Free
from trainyard.policy.stages import Place, Request


class Spread(Place):
    """Each worker goes to the node with the most free GPUs."""

    def put(self, request: Request, free: Free, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang, worker by worker."""
        usable = next(by_type(request, free, nodes), None)
        if usable is None:
            return None
        heap = [(-count, i) for i, count in enumerate(usable.tolist()) if count > 0]
        heapq.heapify(heap)
        got: dict[int, int] = {}
        for _ in range(request.gpus):
            count, i = heap[0]
            got[i] = got.get(i, 0) + 1
            if count < -1:
                heapq.heapreplace(heap, (count + 1, i))
            else:
                heapq.heappop(heap)
        return allocate(request, sorted(got.items()), free, nodes)
