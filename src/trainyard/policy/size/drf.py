"""Size stage: dominant resource fairness (Ghodsi et al., NSDI'11) among jobs.

Every job first gets its smallest size, in the order of the order stage, as long as there is room; then one
GPU at a time goes to the job with the smallest weighted dominant share, until the cluster is full or
every_job has enough.
"""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.size.growth import ALL, Vector, capacity, tasks_of, without
from trainyard.policy.stages import Size, Sizes
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
Counting = Literal["asked", "best"]


class Drf(Size):
    """Equal dominant shares; with `demand=best` of what each job could use, not of what it asks for."""

    def __init__(self, demand: Counting = "asked") -> None:
        self.demand = demand

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes:
        """Return GPUs for each ranked row."""
        jobs, total = [snapshot.table.jobs[row] for row in ranked], capacity(snapshot)
        units = [_unit(job, total) for job in jobs]
        sizes, room = _smallest(jobs, units)
        share = self._shares(snapshot, ranked, jobs, np.array(units))
        heap = [(size * share[i], i) for i, size in enumerate(sizes) if 0 < size < jobs[i].most_gpus]
        heapq.heapify(heap)
        while heap:
            i = heap[0][1]
            left = without(room, units[i], 1)
            if min(left) < 0:  # others may need less of what is short
                heapq.heappop(heap)
                continue
            room = left
            sizes[i] += 1
            if sizes[i] < jobs[i].most_gpus:
                heapq.heapreplace(heap, (sizes[i] * share[i], i))
            else:
                heapq.heappop(heap)
        return Sizes(np.array(sizes, dtype=np.int64))

    def _shares(self, snapshot: Snapshot, ranked: Ints, jobs: list[Job], units: Floats) -> list[float]:
        """Largest part of any resource that one GPU of a job takes along, over the job's weight."""
        if self.demand == "best":
            _, cpus, memory_gb = capacity(snapshot)
            best = snapshot.sensitivity.best_demands(jobs)
            units = np.column_stack([units[:, 0], best[0] / cpus, best[1] / memory_gb])
        dominant = units.reshape(-1, 3).max(axis=1, initial=0.0)
        shares: list[float] = (dominant / snapshot.table.column(C.WEIGHT)[ranked]).tolist()
        return shares


def _unit(job: Job, total: Vector) -> Vector:
    """Parts of the cluster that one more GPU takes, its server included."""
    worker, server = tasks_of(job, total)
    return without(worker, server, -1)


def _smallest(jobs: list[Job], units: list[Vector]) -> tuple[list[int], Vector]:
    """Everybody's smallest size as long as there is room, and what is left of it."""
    sizes, room = [0] * len(jobs), ALL
    for i, (job, unit) in enumerate(zip(jobs, units, strict=True)):
        left = without(room, unit, job.least_gpus)
        if min(left) >= 0:
            sizes[i], room = job.least_gpus, left
    return sizes, room
