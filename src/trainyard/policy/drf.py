"""Size stage: dominant resource fairness (Ghodsi et al., NSDI'11) among jobs.

Every job first gets its smallest size, in the order of the order stage, as long as there is room; then one
GPU at a time goes to the job with the smallest weighted dominant share, until the cluster is full or
everybody has enough.
"""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

from trainyard.model.cluster import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.select import greedy
from trainyard.policy.snapshot import Column, Snapshot
from trainyard.policy.stages import Size, Sizes

C = Column
TINY = 1e-9
Demand = Literal["asked", "best"]


def dominant_share_per_gpu(snapshot: Snapshot, rows: Ints, demand: Demand) -> Floats:
    """Largest fraction of any resource of the cluster that one GPU of a job takes along, over its weight."""
    nodes, jobs = snapshot.nodes, [snapshot.table.jobs[row] for row in rows]
    share = np.full(rows.size, 1.0 / max(int(nodes.gpus.sum()), 1))
    if demand == "best":
        cpus, memory_gb = snapshot.sensitivity.best_demands(jobs)
    else:
        cpus, memory_gb = np.array([_asked(job) for job in jobs], dtype=np.float64).reshape(-1, 2).T
    share = np.maximum(share, cpus / max(float(nodes.cpus.sum()), TINY))
    share = np.maximum(share, memory_gb / max(float(nodes.memory_gb.sum()), TINY))
    per_gpu: Floats = share / snapshot.table.column(C.WEIGHT)[rows]
    return per_gpu


def _asked(job: Job) -> tuple[float, float]:
    """CPUs and GB that go with a GPU because the job says so, a server's included."""
    cpus, memory_gb = job.asked_per_gpu
    server = job.profile.server if job.profile is not None and job.profile.apart else None
    return (cpus or 0.0) + (server.cpus if server else 0.0), (memory_gb or 0.0) + (
        server.memory_gb if server else 0.0
    )


class Drf(Size):
    """Equal dominant shares; with `demand=best` of what each job could use, not of what it asks for."""

    def __init__(self, demand: Demand = "asked") -> None:
        self.demand = demand

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes:
        """Return GPUs for each ranked row."""
        least = snapshot.table.column(C.LEAST)[ranked].astype(np.int64)
        most = snapshot.table.column(C.MOST)[ranked].astype(np.int64)
        chosen = greedy(least.astype(np.float64), snapshot.up_gpus)
        sizes: Ints = np.where(chosen, least, 0)
        left = snapshot.up_gpus - int(sizes.sum())
        share = dominant_share_per_gpu(snapshot, ranked, self.demand)
        heap = [(float(sizes[i] * share[i]), i) for i in np.flatnonzero(chosen & (sizes < most)).tolist()]
        heapq.heapify(heap)
        while heap and left > 0:
            i = heap[0][1]
            sizes[i] += 1
            left -= 1
            if sizes[i] < most[i]:
                heapq.heapreplace(heap, (float(sizes[i] * share[i]), i))
            else:
                heapq.heappop(heap)
        return Sizes(sizes)
