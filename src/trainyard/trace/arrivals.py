"""When jobs come: in batches, at a rate that follows the hour of the week and wanders on two time scales.

    batches in hour h ~ Poisson(rate[h mod 168] / mean batch size x exp(Z1 + Z2 - (sigma1^2 + sigma2^2) / 2))

Zi is a stationary AR(1) process of hours with standard deviation sigma_i and correlation exp(-k / tau_i)
after k hours: hours and weeks of more and of less work. A batch is what one person submits at a time, at most
5 s apart; its size has a table from 1 to 10 and a truncated Pareto tail. Time 0 is Monday 0:00.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats, Ints

WEEK_H = 168
BLOCK_H = 4 * WEEK_H
HOUR_S = 3600.0
BATCH_GAP_S = 5.0


@dataclass(frozen=True, slots=True)
class Batches:
    """How many jobs come together: shares of 1, 2, ... jobs; what is left is the tail."""

    pmf: Floats
    tail_from: float
    tail_alpha: float
    tail_max: float
    gap_s: float

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw the sizes of n batches."""
        # Every draw uses up as many random numbers, so that a longer trace begins like a shorter one.
        u, tail = rng.random(n), self._tail(rng.random(n))
        small = 1 + np.searchsorted(np.cumsum(self.pmf), u, side="right")
        return np.where(small > len(self.pmf), tail, small).astype(np.int64)

    def mean(self) -> float:
        """Return the mean size."""
        grid = (np.arange(10_000) + 0.5) / 10_000
        small = float(np.dot(self.pmf, np.arange(1, len(self.pmf) + 1)))
        return small + max(0.0, 1 - float(self.pmf.sum())) * float(self._tail(grid).mean())

    def _tail(self, u: Floats) -> Floats:
        reach = 1 - (self.tail_from / self.tail_max) ** self.tail_alpha
        return np.asarray(np.rint(self.tail_from * (1 - u * reach) ** (-1 / self.tail_alpha)))


@dataclass(frozen=True, slots=True)
class Modulation:
    """Two log-Gaussian processes that raise and lower the rate: standard deviations and hours of memory."""

    sigma: tuple[float, ...]
    tau_h: tuple[float, ...]

    def factors(self, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield factors of the rate for block after block of hours; their long-run mean is 1."""
        sigma = np.array(self.sigma)
        keep = np.exp(-1 / np.array(self.tau_h))
        fresh = sigma * np.sqrt(1 - keep**2)
        level = sigma * rng.standard_normal(len(sigma))
        while True:
            steps = rng.standard_normal((BLOCK_H, len(sigma))) * fresh
            path = np.empty(BLOCK_H)
            for hour in range(BLOCK_H):
                path[hour] = level.sum()
                level = keep * level + steps[hour]
            yield np.exp(path - (sigma**2).sum() / 2)


@dataclass(frozen=True, slots=True)
class BurstyArrivals:
    """Jobs per hour for each hour of the week, how they come together, and how the rate wanders."""

    hourly: Floats
    batches: Batches
    modulation: Modulation

    def draw(self, jobs: int, rng: np.random.Generator) -> Floats:
        """Draw the first arrivals in whole seconds, in order."""
        blocks: list[Floats] = []
        rate = np.tile(self.hourly / self.batches.mean(), BLOCK_H // WEEK_H)
        factors = self.modulation.factors(rng)
        while sum(map(len, blocks)) < jobs:
            start_h = len(blocks) * BLOCK_H
            blocks.append(self._block(start_h, rng.poisson(rate * next(factors)), rng))
        return np.sort(np.concatenate(blocks) if blocks else np.empty(0))[:jobs]

    def _block(self, start_h: int, batches: Ints, rng: np.random.Generator) -> Floats:
        hours = start_h + np.repeat(np.arange(len(batches)), batches)
        begin = (hours + rng.random(len(hours))) * HOUR_S
        sizes = self.batches.draw(len(hours), rng)
        gaps = np.minimum(rng.exponential(self.batches.gap_s, int(sizes.sum())), BATCH_GAP_S)
        first = np.cumsum(sizes) - sizes
        gaps[first] = 0.0
        since = np.cumsum(gaps)
        return np.asarray(np.floor(np.repeat(begin - since[first], sizes) + since))
