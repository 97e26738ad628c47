"""The speed model as reports corrected it: each kind of job may be slower or faster than its profile says."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.kind import kind_name
from trainyard.model.speed.model import SpeedModel
from trainyard.model.speed.ratios import Ratios
from trainyard.model.speed.shapes import Shapes


class Corrected(SpeedModel):
    """Speeds of a model times a factor by kind of job. It never changes: other factors make another one."""

    def __init__(self, model: SpeedModel, factors: Mapping[str, float]) -> None:
        vars(self).update(vars(model))  # what the model has worked out holds for both
        self.factors = dict(factors)
        self.derived = {}  # but for what others worked out of it
        self._scaled: dict[tuple[int, float], Floats] = {}

    def factor(self, job: Job) -> float:
        """How much faster jobs of this kind are than their profile says."""
        return self.factors.get(kind_name(job.kind), 1.0)

    def rate(self, job: Job, allocation: Allocation) -> float:
        """Samples per second of a job under what it holds."""
        return super().rate(job, allocation) * self.factor(job)

    def speeds(self, job: Job, shapes: Shapes) -> Floats:
        """Samples per second of a job in each shape."""
        return super().speeds(job, shapes) * self.factor(job)

    def mixed(self, job: Job, workers: Ints) -> Floats:
        """Samples per second with (n, types) workers, packed."""
        return super().mixed(job, workers) * self.factor(job)

    def ratios(self, job: Job, gpu_type: int, bandwidth_gbps: float) -> Ratios | None:
        """The time of a sample as a sum of ratios of workers and servers."""
        found, factor = super().ratios(job, gpu_type, bandwidth_gbps), self.factor(job)
        return None if found is None else Ratios(*(seconds / factor for seconds in found))

    def work(self, job: Job) -> tuple[float, float, float]:
        """Total samples, as without corrections, reference rate and ideal seconds."""
        total, rate, ideal_s = super().work(job)
        factor = self.factor(job)
        return total, rate * factor, ideal_s if job.duration_s is not None else ideal_s / factor

    def _surface(self, job: Job, gpu_type: int, shape: tuple[int, ...]) -> Floats:
        speeds, factor = super()._surface(job, gpu_type, shape), self.factor(job)
        if factor == 1.0:
            return speeds
        key = id(speeds), factor  # the model keeps what it worked out
        if key not in self._scaled:
            self._scaled[key] = speeds * factor
        return self._scaled[key]
