"""SMD's Algorithm 2 (Yu et al., INFOCOM'21): fractional numbers of workers and servers made whole by chance.

Each number is rounded up with a probability equal to its fraction, down otherwise, several times; the best
draw within the limits counts. If there is none, both are rounded down, which is always within them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import WHOLE_COUNT
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    completion_s,
    within_limits,
)

TRIES = 20
# Steps in workers and servers, the first of them none.
NEAR = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1), (1, 1), (-1, -1)]).T


class Rounding(NamedTuple):
    """How to round: the source of chance, how often to try, and what to multiply by first (M)."""

    rng: np.random.Generator
    tries: int = TRIES
    scale: float | Floats = 1.0


def round_numbers(
    problem: Problem, workers: Floats, servers: Floats, rounding: Rounding
) -> tuple[Ints, Ints]:
    """Return whole numbers of workers and servers: the best feasible draw of each job, or rounded down."""
    shape = workers.size, rounding.tries
    drawn_w, drawn_p = (
        np.maximum(draw(rounding.rng, rounding.scale * x, shape), 1) for x in (workers, servers)
    )
    tau = np.where(
        within_limits(problem.demands, drawn_w, drawn_p), completion_s(problem, drawn_w, drawn_p), np.inf
    )
    best = (np.arange(workers.size), tau.argmin(axis=1))
    found = np.isfinite(tau[best])
    down_w, down_p = (np.maximum(_down(x), 1) for x in (workers, servers))
    return np.where(found, drawn_w[best], down_w), np.where(found, drawn_p[best], down_p)


def polished(problem: Problem, workers: Ints, servers: Ints) -> tuple[Ints, Ints]:
    """Step to the best of the numbers next to these, as long as that is better: not part of Algorithm 2."""
    numbers = np.stack([workers, servers])
    jobs = np.arange(workers.size)
    while jobs.size:
        some = problem.take(jobs)
        near_w, near_p = (numbers[k, jobs, None] + NEAR[k] for k in (0, 1))
        inside = (near_w >= 1) & (near_p >= 1)
        near_w, near_p = np.maximum(near_w, 1), np.maximum(near_p, 1)
        inside &= within_limits(some.demands, near_w, near_p)
        tau = np.where(inside, completion_s(some, near_w, near_p), np.inf)
        best = tau.argmin(axis=1)
        better = tau[np.arange(jobs.size), best] < tau[:, 0]
        jobs, best = jobs[better], best[better]
        numbers[:, jobs] += NEAR[:, best]
    return numbers[0], numbers[1]


def draw(rng: np.random.Generator, numbers: Floats, shape: tuple[int, int]) -> Ints:
    """Round each number up or down by chance, (numbers, tries); on average nothing changes."""
    down = _down(numbers)
    up = rng.random(shape) < np.maximum(numbers - down, 0.0)[:, None]
    drawn: Ints = down[:, None] + up
    return drawn


def safe_scale(demands: Demands, delta: float = 1.0) -> Floats:
    """Return M: scaled by it, a draw breaks each limit with a probability of at most delta / (2 rows)."""
    need = np.maximum(demands.worker, demands.server)
    room = np.divide(demands.limit, need, out=np.full(need.shape, np.inf), where=need > 0).min(axis=1)
    a = 3 * np.log(2 * need.shape[1] / delta) / (2 * room)
    scale: Floats = 1 + a - np.sqrt(a * (a + 2))
    return scale


def _down(numbers: Floats) -> Ints:
    down: Ints = np.floor(numbers + WHOLE_COUNT).astype(np.int64)
    return down
