"""How a job's speed grows with its workers w and servers p, learnt from the speeds it has had so far.

A step of K samples takes K / speed seconds, a sum of unknowns none of which is negative:

    ring   t0 K/w + t1 (w-1) + t2 (w-1)/w + t3        Capes et al. 2019
    sync   a K/w + b + c w/p + d w + e p              servers, Optimus (EuroSys 2018)
    async  a K/w + b w/p + c w + d p                  servers, no worker waits for the others

K is `batch` with strong scaling and `batch` x w with weak scaling. Optimus gives each worker of an
asynchronous job a batch of its own, which is weak scaling: a speed of w / (a + b w/p + c w + d p) batches.

Each allocation counts once, by its mean speed, and errors count relative to the speed. What a few points
leave open is decided hopefully, so that a scheduler tries: time is spent on computing, which more workers
share, rather than on what stays, and on that rather than on what grows. One point alone is linear scaling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Profile, Scaling
from trainyard.model.speed.compute import samples_per_step
from trainyard.model.speed.paramserver import at_least_one
from trainyard.profiling.least_squares import nonnegative

Formula = Literal["ring", "sync", "async"]  # of the time of a step

SHARED, STAYS, GROWS = 0.0, 1e-8, 1e-6  # how much unknowns are pulled to 0 that no point asks for
DISLIKED: Mapping[Formula, tuple[float, ...]] = {
    "ring": (SHARED, GROWS, STAYS, STAYS),
    "sync": (SHARED, STAYS, STAYS, GROWS, GROWS),
    "async": (SHARED, STAYS, GROWS, GROWS),
}
MOST_TIMES = 30.0  # no worker is thought to be faster than any seen by more than this
SERVERS = 1 << 31  # more than there are


@dataclass(frozen=True, slots=True, eq=False)
class ScalingFit:
    """Speeds of a job for any number of workers, one or more, and servers, none counting as one."""

    kind: Formula
    batch: int
    scaling: Scaling
    unknowns: Floats
    measured: Ints  # allocations, in order
    speeds: Floats  # of the measured
    most: float  # samples per second of one worker

    def speed(self, workers: Ints, servers: Ints) -> Floats:
        """Samples per second of each allocation: the mean of what was measured there, else as fitted."""
        asked = _allocations(self.kind, workers, servers)
        place = np.minimum(np.searchsorted(self.measured, asked), len(self.measured) - 1)
        return np.where(self.measured[place] == asked, self.speeds[place], self.fitted(workers, servers))

    def fitted(self, workers: Ints, servers: Ints) -> Floats:
        """Samples per second of each allocation, whatever was measured there."""
        samples = samples_per_step(Profile(batch=self.batch, scaling=self.scaling), workers)
        seconds = _columns(self.kind, samples, workers, servers) @ self.unknowns
        fastest: Floats = samples / (self.most * workers)
        return samples / np.maximum(seconds, fastest)


def fit_scaling(
    kind: Formula, batch: int, scaling: Scaling, workers: Ints, servers: Ints, speeds: Floats
) -> ScalingFit:
    """Fit measured speeds, in samples per second; measurements of one allocation may repeat."""
    if not len(speeds) or not np.all((speeds > 0) & np.isfinite(speeds)):
        raise InputError("speeds must be numbers above 0, and at least one")
    measured, first, which = np.unique(
        _allocations(kind, workers, servers), return_index=True, return_inverse=True
    )
    means: Floats = np.bincount(which, weights=speeds) / np.bincount(which)
    workers, servers = workers[first], servers[first]
    samples = samples_per_step(Profile(batch=batch, scaling=scaling), workers)
    rows = _columns(kind, samples, workers, servers) * (means / samples)[:, None]
    unknowns = nonnegative(rows, np.ones(len(means)), np.array(DISLIKED[kind]))
    most = MOST_TIMES * float((means / workers).max())
    return ScalingFit(kind, batch, scaling, unknowns, measured, means, most)


def _allocations(kind: Formula, workers: Ints, servers: Ints) -> Ints:
    """Workers and servers as one number."""
    return workers if kind == "ring" else workers * SERVERS + at_least_one(servers)


def _columns(kind: Formula, samples: Floats, workers: Ints, servers: Ints) -> Floats:
    """Seconds that one unit of each unknown adds to a step."""
    one, each, p = np.ones(len(workers)), samples / workers, at_least_one(servers)
    if kind == "ring":
        return np.stack([each, workers - 1.0, (workers - 1) / workers, one], axis=1)
    servers_s = [workers / p, workers.astype(np.float64), p.astype(np.float64)]
    return np.stack([each, *([one] if kind == "sync" else []), *servers_s], axis=1)
