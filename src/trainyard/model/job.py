"""Jobs: what a user submits. A job never changes; the core keeps its progress."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from trainyard.model.interned import interned
from trainyard.model.kind import Content, Kind
from trainyard.model.profile import Profile
from trainyard.model.terms import Terms

DEFAULT_CHECKPOINT_S = 1800.0
_set = object.__setattr__


class _Kind:
    """Keeps the kind of a job once it is worked out; it is no field and is not written to files."""

    __slots__ = ("_kind",)
    _kind: Kind


@dataclass(frozen=True, slots=True)
class Job(_Kind):
    """One training job. `duration_s` or `samples` says how much work it is; neither, if nobody knows."""

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
    user: str = ""
    priority: int = 0  # higher goes first
    sizes: tuple[int, ...] = ()  # the only numbers of GPUs it may run with, rising; none: any of its range
    preemptible: bool = True  # False: once it runs, no plan stops or resizes it
    terms: Terms | None = None  # of a real job; one of a trace has none
    least_gpus: int = field(init=False, repr=False, compare=False)  # fewest GPUs the job can run with
    most_gpus: int = field(init=False, repr=False, compare=False)  # most GPUs the job can use
    # Whether it asks for CPUs or memory of its own choice, itself or by its profile.
    particular: bool = field(init=False, repr=False, compare=False)
    # Whether it has to be admitted: it has a priority, sizes of its own, or must not be stopped.
    bound: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, "least_gpus", self.gpus if self.min_gpus is None else self.min_gpus)
        _set(self, "most_gpus", self.gpus if self.max_gpus is None else self.max_gpus)
        if self.sizes:
            _set(self, "least_gpus", self.sizes[bisect_left(self.sizes, self.least_gpus)])
            _set(self, "most_gpus", self.sizes[bisect_right(self.sizes, self.most_gpus) - 1])
        _set(self, "bound", bool(self.priority or self.sizes or not self.preemptible))
        own = self.cpus is not None or self.memory_gb is not None
        _set(self, "particular", own or (self.profile is not None and self.profile.apart))

    @property
    def kind(self) -> Kind:
        """What it has in common with jobs that are alike, as one object for all of them."""
        try:
            return self._kind
        except AttributeError:
            limits = self.gpus, self.least_gpus, self.most_gpus, self.gpu_type
            _set(self, "_kind", interned(Kind, self.content, *limits, self.asked_per_gpu, self.sizes))
            return self._kind

    @property
    def content(self) -> Content | None:
        """What its profile says; None without a profile."""
        return None if self.profile is None else self.profile.content

    @property
    def elastic(self) -> bool:
        """Whether the job may run with other than the requested GPUs."""
        return self.least_gpus != self.most_gpus

    @property
    def servers(self) -> int:
        """Parameter servers that go with the requested GPUs: one for each worker."""
        return self.gpus if self.profile is not None and self.profile.serves else 0

    @property
    def asked_per_gpu(self) -> tuple[float | None, float | None]:
        """CPUs and GB that each worker asks for; None stands for its node's proportional share."""
        cpus = None if self.cpus is None else self.cpus / self.gpus
        memory_gb = None if self.memory_gb is None else self.memory_gb / self.gpus
        if self.profile is not None and self.profile.apart and self.profile.worker is not None:
            worker = self.profile.worker
            return (
                worker.cpus if cpus is None else cpus,
                worker.memory_gb if memory_gb is None else memory_gb,
            )
        return cpus, memory_gb

    def allowed(self, gpus: int) -> int:
        """Return the most GPUs, of so many, that it may run with; 0 if these are too few."""
        if gpus < self.least_gpus:
            return 0
        gpus = min(gpus, self.most_gpus)
        return self.sizes[bisect_right(self.sizes, gpus) - 1] if self.sizes else gpus

    def need(self, gpus: int, servers: int) -> tuple[float, float]:
        """CPUs and GB that these workers and parameter servers ask for; 0 where they do not say."""
        cpus, memory_gb = self.asked_per_gpu
        need_cpus, need_gb = gpus * (cpus or 0.0), gpus * (memory_gb or 0.0)
        if self.profile is not None and self.profile.apart and self.profile.server is not None:
            need_cpus += servers * self.profile.server.cpus
            need_gb += servers * self.profile.server.memory_gb
        return need_cpus, need_gb
