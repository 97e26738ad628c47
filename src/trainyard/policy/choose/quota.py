"""What is left to give away: GPUs, and what each tenant may still have of them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from trainyard.model.job import Job
from trainyard.model.tenant import Tenant


class Quota:
    """The limits and guarantees of tenants, as far as they are not used up."""

    def __init__(self, tenants: Mapping[str, Tenant]) -> None:
        self._left = {name: t.limit for name, t in tenants.items() if t.limit is not None}
        self._promised = {name: t.guaranteed for name, t in tenants.items() if t.guaranteed}

    def left(self, job: Job) -> float:
        """GPUs that the job's tenant may still have."""
        return self._left.get(job.tenant, inf)

    def take(self, job: Job, gpus: int) -> None:
        """Count what a job has against the limit of its tenant; below 0 it gives back."""
        if job.tenant in self._left:
            self._left[job.tenant] -= gpus

    def spend(self, job: Job, gpus: int) -> None:
        """Count what a job has, whether it is entitled to it or not, against the guarantee of its tenant."""
        self._promised[job.tenant] = max(self._promised.get(job.tenant, 0) - gpus, 0)

    def entitled(self, job: Job, gpus: int) -> bool:
        """Whether so many GPUs are within what is left of its tenant's guarantee; if so, count them."""
        if self._promised.get(job.tenant, 0) < gpus:
            return False
        self._promised[job.tenant] -= gpus
        return True
