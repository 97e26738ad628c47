"""Place stage: nodes drawn at random, the reference that every other placement should beat."""

from __future__ import annotations

import zlib

import numpy as np

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.policy.place.fit import allocate, by_type
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.room import Parts, Room, counts_of, total


class Random(Place):
    """Fill nodes in a random order that depends on the seed and the job alone."""

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang."""
        usable = by_type(request, free, nodes)
        if not usable or total(usable[0]) < request.gpus:
            return None
        counts = counts_of(usable[0])
        draw = np.random.default_rng([seed, zlib.crc32(request.job.job_id.encode())])
        parts: Parts = []
        left = request.gpus
        for i in draw.permutation(sorted(counts)).tolist():
            parts.append((i, min(left, counts[i])))
            left -= parts[-1][1]
            if left == 0:
                break
        return allocate(request, parts, free, nodes)
