"""What jobs ask for and how long they run: three forms in which published traces tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trainyard.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Asked:
    """GPUs and seconds of every job, and its type where the trace has types."""

    gpus: Ints
    duration_s: Floats
    types: NDArray[np.str_] | None = None


class Workload(Protocol):
    """Draws what jobs ask for."""

    def draw(self, n: int, rng: np.random.Generator) -> Asked:
        """Draw n jobs."""


@dataclass(frozen=True, slots=True)
class GpuCounts:
    """GPU counts and their shares of the jobs."""

    gpus: Ints
    shares: Floats

    @classmethod
    def of(cls, pmf: Mapping[str, float]) -> GpuCounts:
        """Take shares by GPU count; they need not add up to 1."""
        shares = np.array(list(pmf.values()), dtype=float)
        return cls(np.array([int(gpus) for gpus in pmf], dtype=np.int64), shares / shares.sum())

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n GPU counts."""
        return rng.choice(self.gpus, n, p=self.shares)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Lognormal distributions with weights, cut at a maximum: drawn again above it, or clamped to it."""

    weights: Floats
    mu: Floats
    sigma: Floats
    max_s: float
    clamped: bool = False
    coupling: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n run times."""
        part = rng.choice(len(self.weights), n, p=self.weights)
        times = np.exp(rng.normal(self.mu[part], self.sigma[part]))
        above = np.flatnonzero(times > self.max_s)
        if self.clamped:
            times[above] = self.max_s
        elif len(above):
            times[above] = self.draw(len(above), rng)
        return np.asarray(times)


@dataclass(frozen=True, slots=True)
class ByClass:
    """A mixture for each class of GPU counts, by the fewest GPUs of the class."""

    sizes: GpuCounts
    classes: Mapping[int, Mixture]

    def draw(self, n: int, rng: np.random.Generator) -> Asked:
        """Draw n jobs."""
        gpus, least = self.sizes.draw(n, rng), np.array(sorted(self.classes))
        which = np.searchsorted(least, gpus, side="right") - 1
        times = np.empty(n)
        for i, first in enumerate(least):
            jobs, mixture = np.flatnonzero(which == i), self.classes[int(first)]
            times[jobs] = couple(gpus[jobs], mixture.draw(len(jobs), rng), mixture.coupling, rng)
        return Asked(gpus, _seconds(times))


@dataclass(frozen=True, slots=True)
class ByTable:
    """One CDF for all jobs, at 1, 2, 4, ... seconds, and how much longer larger jobs run."""

    sizes: GpuCounts
    cdf: Floats
    coupling: float

    def draw(self, n: int, rng: np.random.Generator) -> Asked:
        """Draw n jobs."""
        gpus = self.sizes.draw(n, rng)
        log2_s = np.interp(rng.random(n), self.cdf / self.cdf[-1], np.arange(len(self.cdf)))
        return Asked(gpus, _seconds(couple(gpus, np.exp2(log2_s), self.coupling, rng)))


@dataclass(frozen=True, slots=True)
class ByType:
    """Types of work with their shares, each with its own GPU counts and run times."""

    shares: Mapping[str, float]
    parts: Mapping[str, tuple[GpuCounts, Mixture]]

    def draw(self, n: int, rng: np.random.Generator) -> Asked:
        """Draw n jobs."""
        types = draw_labels(self.shares, n, rng)
        gpus, times = np.empty(n, dtype=np.int64), np.empty(n)
        for name, (sizes, mixture) in self.parts.items():
            jobs = np.flatnonzero(types == name)
            gpus[jobs], times[jobs] = sizes.draw(len(jobs), rng), mixture.draw(len(jobs), rng)
        return Asked(gpus, _seconds(times), types)


def couple(gpus: Ints, times: Floats, coupling: float, rng: np.random.Generator) -> Floats:
    """Give the same run times to other jobs, so that they go with the GPUs: a Gaussian copula, by ranks.

    The published CDFs of GPUs and of run times do not say which go together; the mean GPU-time of a job does,
    and `coupling`, the correlation of the copula, is chosen to give it. Both CDFs stay exactly as they are.
    """
    n = len(gpus)
    if not coupling:
        return times
    size_score = np.empty(n)
    size_score[np.lexsort((rng.random(n), gpus))] = np.sort(rng.standard_normal(n))
    score = coupling * size_score + np.sqrt(1 - coupling**2) * rng.standard_normal(n)
    coupled = np.empty(n)
    coupled[np.argsort(score)] = np.sort(times)
    return coupled


def draw_labels(shares: Mapping[str, float], n: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Draw n labels; none at all where there are no shares."""
    if not shares:
        return np.full(n, "")
    weights = np.array(list(shares.values()), dtype=float)
    return rng.choice(np.array(list(shares)), n, p=weights / weights.sum())


def _seconds(times: Floats) -> Floats:
    return np.maximum(1.0, np.rint(times))
