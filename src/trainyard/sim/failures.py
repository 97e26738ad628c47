"""Node failures: from a list, or drawn from a rate."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.cluster import Cluster


class Failure(NamedTuple):
    """A node goes down at `time_s` and is back `repair_s` later."""

    time_s: float
    node: str
    repair_s: float


@dataclass(frozen=True, slots=True)
class RandomFailures:
    """Failures without end, in order of time: exponential up-times per node, exponential repairs."""

    cluster: Cluster
    mtbf_h: float  # mean hours between two failures of one node
    repair_h: float = 1.0
    seed: int = 0

    def __iter__(self) -> Iterator[Failure]:
        rng = np.random.default_rng([self.seed, 0xFA11])
        up_s, down_s = self.mtbf_h * 3600, self.repair_h * 3600
        heap = [(float(rng.exponential(up_s)), node.node_id) for node in self.cluster.nodes]
        heapq.heapify(heap)
        while heap:
            time_s, node = heap[0]
            repair_s = float(rng.exponential(down_s))
            heapq.heapreplace(heap, (time_s + repair_s + float(rng.exponential(up_s)), node))
            yield Failure(time_s, node, repair_s)
