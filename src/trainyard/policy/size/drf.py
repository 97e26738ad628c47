"""Size stage: dominant resource fairness (Ghodsi et al., NSDI'11) among jobs.

Every job first gets its smallest size, in the order of the order stage, as long as there is room; then one
GPU at a time goes to the job with the smallest weighted dominant share, until the cluster is full or
every_job has enough.
"""

from __future__ import annotations

from operator import add
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.size.growth import ALL, Amounts, Step, all_sizes, grow, in_turn, tasks_of
from trainyard.policy.stages import Size, Sizes
from trainyard.state.capacity import up_capacity
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
        jobs, total = [snapshot.table.jobs[row] for row in ranked], up_capacity(snapshot)
        units = [_unit(job, total) for job in jobs]
        share = self._shares(snapshot, ranked, jobs, np.array(units).reshape(-1, 3))
        most = [job.most_gpus for job in jobs]

        def one_more(i: int, size: int, _: Amounts) -> Step[int] | None:
            return (size * share[i], units[i], size + 1) if size < most[i] else None

        least = zip(jobs, units, strict=True)
        going, room = in_turn([tuple(job.least_gpus * part for part in unit) for job, unit in least], ALL)
        sizes = grow({i: jobs[i].least_gpus for i in going}, room, one_more)
        return Sizes(all_sizes(sizes, 0, len(jobs)))

    def _shares(self, snapshot: Snapshot, ranked: Ints, jobs: list[Job], units: Floats) -> list[float]:
        """Largest part of any resource that one GPU of a job takes along, over the job's weight."""
        if self.demand == "best":
            _, cpus, memory_gb = up_capacity(snapshot)
            best = snapshot.sensitivity.best_demands(jobs)
            units = np.column_stack([units[:, 0], best[0] / cpus, best[1] / memory_gb])
        dominant = units.max(axis=1, initial=0.0)
        shares: list[float] = (dominant / snapshot.table.column(C.WEIGHT)[ranked]).tolist()
        return shares


def _unit(job: Job, total: Amounts) -> Amounts:
    """Parts of the cluster that one more GPU takes, its server included."""
    return tuple(map(add, *tasks_of(job, total)))
