"""The paper's engine: a market inside each category, the best category wins.

A category fixes how many workers each job gets. What is left, sum(work / speed), is convex in who gets
which types. So: value each type by the seconds that one more worker of it would save at the present speeds,
clear the market for these values, move towards its answer as far as that helps, and value again
(Frank-Wolfe). Convexity gives a lower bound for the category on the way. Categories are enumerated or
sampled.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.fairness import jain
from trainyard.policy.types.market import compositions
from trainyard.policy.types.market.clearing import clear_types
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.polish import polish
from trainyard.policy.types.market.prices import Assignment
from trainyard.policy.types.market.rings import Rings

REVALUATIONS = 5
POLISHED = 8  # the best categories whose answers are polished
CHUNK = 256  # categories that are solved at once
Sampler = Literal["around", "uniform", "prioritised"]


class Valued(NamedTuple):
    """What categories are worth."""

    mix: Ints  # (N, S, M)
    seconds: Floats  # (N,): sum of weighted completion times
    bound: Floats  # (N,): no assignment of the category has less
    prices: Floats  # (N, M): of the last market


class Fairness(NamedTuple):
    """What decides: sum(J) x (beta + (1 - beta) x (1 - Jain index of J by the reference))."""

    reference: Floats  # (S,): seconds that would be fair
    beta: float = 1.0  # 1: only completion times count

    def score(self, seconds: Floats) -> Floats:
        """Score of completion times (..., S)."""
        unfair = 1.0 - jain(seconds / self.reference)
        score: Floats = seconds.sum(axis=-1) * (self.beta + (1.0 - self.beta) * unfair)
        return score


def category_values(rings: Rings, weight: Floats, capacity: Ints, sizes: Ints) -> Valued:
    """Solve the market inside each of some categories (N, S)."""
    samples, jobs = sizes.shape
    work = weight * rings.work
    extra = (weight[:, None] * rings.extra)[np.arange(jobs), np.minimum(sizes, rings.most)].sum(axis=1)
    x = sizes[:, :, None] * (capacity / capacity.sum())
    best, bound = np.full(samples, np.inf), np.full(samples, -np.inf)
    kept = np.zeros((samples, jobs, len(capacity)), dtype=np.int64)
    for _ in range(REVALUATIONS):
        speed = (rings.rho * x).sum(axis=2)
        value = (work / speed**2)[:, :, None] * rings.rho
        sold, prices = clear_types(np.where(rings.rho > 0, value, -np.inf), sizes, capacity)
        now = (work / speed).sum(axis=1)
        bound = np.maximum(bound, now - (value * (sold - x)).sum(axis=(1, 2)) + extra)
        with np.errstate(divide="ignore"):
            got = (work / (rings.rho * sold).sum(axis=2)).sum(axis=1) + extra
        better = got < best
        best[better], kept[better] = got[better], sold[better]
        x = x + _step(work, speed, (rings.rho * (sold - x)).sum(axis=2))[:, None, None] * (sold - x)
    return Valued(kept, best, bound, prices)


def _step(work: Floats, speed: Floats, change: Floats) -> Floats:
    """How far to go, between 0 and 1, so that sum(work / (speed + step x change)) is least: by bisection."""
    low, high = np.zeros(len(speed)), np.ones(len(speed))
    for _ in range(25):
        middle = (low + high) / 2
        slope = -(work * change / (speed + middle[:, None] * change) ** 2).sum(axis=1)
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    return high


def fair_share_s(rings: Rings, capacity: Ints) -> Floats:
    """Completion times of the market in which every job gets the same number of workers."""
    jobs = len(rings.work)
    sizes = _allowed(rings, np.full((1, jobs), max(int(capacity.sum()) // jobs, 1), dtype=np.int64))
    mix = category_values(rings, np.ones(jobs), capacity, sizes).mix[0]
    return rings.seconds(np.arange(jobs), mix)


def search_all(costs: Costs, rings: Rings, walk: bool = True) -> Assignment:
    """Look through every category whose optimistic bound is below the best found so far."""
    most, (workers, jobs) = rings.rho.max(axis=1), _players(costs, rings)
    work, here = costs.weight * rings.work, np.arange(costs.jobs)
    best: Assignment | None = None
    for block in compositions.every(workers, jobs):
        sizes = block[:, : costs.jobs]
        hope = (work / (sizes * most)).sum(axis=1)
        hope += (costs.weight[:, None] * rings.extra)[here, np.minimum(sizes, rings.most)].sum(axis=1)
        sizes = sizes[np.isfinite(hope) & (hope < (np.inf if best is None else best.cost))]
        for start in range(0, len(sizes), CHUNK):
            best = _better(best, _best_of(costs, rings, sizes[start : start + CHUNK], walk))
    return best or _best_of(costs, rings, np.ones((1, costs.jobs), dtype=np.int64), walk)


def search_sampled(
    costs: Costs,
    rings: Rings,
    samples: int,
    generator: np.random.Generator,
    sampler: Sampler = "around",
    theta: float = 0.5,
    spread: float = 10.0,
    skipped: float = 0.3,
    walk: bool = True,
    fairness: Fairness | None = None,
) -> Assignment:
    """Look at a sample of categories; with `walk` go on from the best to neighbouring ones.

    `around` draws sizes near gain^theta (1/2: least average time, 0: equal shares, 1: equal times), the more
    closely the larger `spread`; `uniform` draws any; `prioritised` leaves the first ranks out. With fairness
    its score decides which category is the best, and there is no walk: that would look at times only.
    """
    workers, jobs = _players(costs, rings)
    average = _gains(costs, rings, (rings.rho @ costs.capacity) / costs.capacity.sum())
    if sampler == "around":
        # Where many workers of a slow type would do, one of the fastest may do too: half expect the one.
        fastest = _gains(costs, rings, rings.rho.max(axis=1))
        parts = [(fastest, samples // 2), (average, samples - samples // 2)]
        sizes = np.concatenate(
            [
                compositions.around(gain**theta, int(costs.capacity.sum()), part, spread, generator)
                for gain, part in parts
                if part
            ]
        )
    elif sampler == "uniform":
        sizes = compositions.uniform(workers, jobs, samples, generator)
    else:
        gain = np.append(average, np.zeros(jobs - costs.jobs))
        sizes = compositions.prioritised(gain, workers, samples, skipped, generator)
    sizes = sizes[:, : costs.jobs]
    best = _best_of(costs, rings, _allowed(rings, sizes), walk, fairness)
    if not np.isfinite(best.cost):  # no category of the sample serves every job; all at their least may
        best = _better(best, _best_of(costs, rings, _allowed(rings, 0 * sizes[:1]), walk, fairness))
    return best._replace(bound=-np.inf)  # a sample says nothing of other categories


def _players(costs: Costs, rings: Rings) -> tuple[int, int]:
    """Workers and jobs to make categories of.

    Where a job is better off alone, it must be possible to leave workers idle: one more job, which may get
    none of them, does.
    """
    idle = int((_gains(costs, rings, rings.rho.max(axis=1)) <= 0).any())
    return int(costs.capacity.sum()) + idle, costs.jobs + idle


def _gains(costs: Costs, rings: Rings, speed: Floats) -> Floats:
    """What each job would gain by very many workers, if the first one had such a speed."""
    network_s = np.where(np.isfinite(rings.extra), rings.extra, 0.0).max(axis=1)
    gain: Floats = np.maximum(rings.work / speed - network_s, 0.0) * costs.weight
    return gain


def _allowed(rings: Rings, sizes: Ints) -> Ints:
    """Cut sizes to what a job may have."""
    there = np.isfinite(rings.extra)
    return np.clip(sizes, there.argmax(axis=1), rings.most - there[:, ::-1].argmax(axis=1))


def _best_of(
    costs: Costs, rings: Rings, sizes: Ints, walk: bool, fairness: Fairness | None = None
) -> Assignment:
    """Solve some categories, polish the best and return the best of these."""
    valued = category_values(rings, costs.weight, costs.capacity, sizes)
    pairs = np.tile(np.arange(costs.jobs), len(sizes)), valued.mix.reshape(-1, costs.types)
    if fairness is None:  # what it really costs, of which the formula may know only most
        rank = costs.of(*pairs).reshape(len(sizes), -1).sum(axis=1)
    else:
        rank = fairness.score(rings.seconds(*pairs).reshape(len(sizes), -1))
    best: Assignment | None = None
    for k in np.argsort(rank, kind="stable")[:POLISHED].tolist():
        mix = polish(costs, valued.mix[k], resize=walk and fairness is None)
        found = Assignment(mix, costs.total(mix), float(valued.bound.min()), valued.prices[k])
        if fairness is not None:
            return found
        best = _better(best, found)
    assert best is not None
    return best


def _better(a: Assignment | None, b: Assignment) -> Assignment:
    if a is None:
        return b
    better = b if b.cost < a.cost else a
    return better._replace(bound=min(a.bound, b.bound, better.cost))
