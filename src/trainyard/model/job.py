"""Jobs: what a user submits. A job never changes; its progress is the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.model.profile import Profile

DEFAULT_CHECKPOINT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Job:
    """One training job. Exactly one of `duration_s` and `samples` says how much work it is."""

    job_id: str
    arrival_s: float
    gpus: int
    duration_s: float | None = None
    samples: float | None = None
    model: str = ""
    profile: Profile | None = None
    min_gpus: int | None = None
    max_gpus: int | None = None
    tenant: str = ""
    weight: float = 1.0
    deadline_s: float | None = None
    gpu_type: str = ""
    cpus: float | None = None
    memory_gb: float | None = None
    status: str = ""
    checkpoint_s: float = DEFAULT_CHECKPOINT_S

    @property
    def elastic(self) -> bool:
        """Whether the job may run with other than the requested GPUs."""
        return self.least_gpus != self.most_gpus

    @property
    def least_gpus(self) -> int:
        """Fewest GPUs the job can run with."""
        return self.min_gpus if self.min_gpus is not None else min(self.gpus, self.max_gpus or self.gpus)

    @property
    def most_gpus(self) -> int:
        """Most GPUs the job can use."""
        return self.max_gpus if self.max_gpus is not None else max(self.gpus, self.min_gpus or self.gpus)
