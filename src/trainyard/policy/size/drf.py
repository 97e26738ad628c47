"""Size stage: dominant resource fairness (Ghodsi et al., NSDI'11) among jobs.

Every job first gets its smallest size, in the order of the order stage, as long as there is room; then one
GPU at a time goes to the job with the smallest weighted dominant share, until the cluster is full or
every job has enough.
"""

from __future__ import annotations

from operator import add
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.size.growth import ALL, Amounts, Growth, all_sizes, grow, in_turn, tasks_of
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
Counting = Literal["asked", "best"]


class Drf(Size):
    """Equal dominant shares; with `demand=best` of what each job could use, not of what it asks for."""

    def __init__(self, demand: Counting = "asked") -> None:
        self.demand = demand

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs for each ranked row."""
        jobs, total = [snapshot.table.jobs[row] for row in ranked.tolist()], up_capacity(snapshot)
        least, most = [job.least_gpus for job in jobs], [job.most_gpus for job in jobs]
        units = [tuple(map(add, *tasks)) for tasks in tasks_of(jobs, total)]  # of a GPU, its server included
        parts = np.array(units).reshape(-1, 3)
        share = self._shares(snapshot, ranked, jobs, parts)

        def one_more(i: int, size: int, _: Amounts) -> Growth[int] | None:
            return (size * share[i], units[i], size + 1) if size < most[i] else None

        served, room = in_turn((parts * np.array(least)[:, None]).tolist(), ALL)
        sizes = grow({i: least[i] for i in served}, room, one_more)
        return Chosen(Shapes(all_sizes(sizes, 0, len(jobs))))

    def _shares(self, snapshot: Snapshot, ranked: Ints, jobs: list[Job], units: Floats) -> list[float]:
        """Largest part of any resource that one GPU of a job takes along, over the job's weight."""
        if self.demand == "best":
            _, cpus, memory_gb = up_capacity(snapshot)
            best = snapshot.sensitivity.best_demands(jobs)
            units = np.column_stack([units[:, 0], best[0] / cpus, best[1] / memory_gb])
        dominant = units.max(axis=1, initial=0.0)
        shares: list[float] = (dominant / snapshot.table.column(C.WEIGHT)[ranked]).tolist()
        return shares
