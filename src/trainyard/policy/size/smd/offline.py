"""SMD's problem of one interval (Yu et al., INFOCOM'21): which jobs to admit, and with how many of what.

    maximise  sum_i utility_i(tau_i(w_i, p_i)) x_i
    such that sum_i limit_i x_i <= capacity, and each admitted job keeps to its limit

Admission counts what a job may have (its limit), not what it uses. So the jobs are independent but for that:
each has the numbers with which it finishes first, and a knapsack chooses among them. The baselines of the
paper differ in the numbers only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import WHOLE_COUNT
from trainyard.policy.size.smd.inner import solve
from trainyard.policy.size.smd.problem import (
    Problem,
    completion_s,
    most_servers,
    most_workers,
    within_limits,
)
from trainyard.policy.size.smd.rounding import Rounding, polished, round_numbers
from trainyard.policy.size.smd.utility import Utility
from trainyard.solve.knapsack import Knapsack, exact

CHUNK = 1 << 18  # pairs (w, p) at once


class Sized(NamedTuple):
    """Workers and servers of each job; one of each where not even these fit."""

    workers: Ints
    servers: Ints
    fits: Mask


class Decision(NamedTuple):
    """What each job would get, what that is worth, and who is admitted."""

    workers: Ints
    servers: Ints
    admitted: Mask
    utility: Floats  # of every job, admitted or not

    def total(self) -> float:
        """Return the utility of those admitted."""
        return float(self.utility[self.admitted].sum())


def decide(
    problem: Problem,
    utility: Utility,
    capacity: Floats,
    rounding: Rounding,
    eps: float = 0.1,
    outer: Knapsack = exact,
) -> Decision:
    """Return what SMD decides."""
    return admit(problem, smd_numbers(problem, rounding, eps), utility, capacity, outer)


def admit(
    problem: Problem, numbers: Sized, utility: Utility, capacity: Floats, outer: Knapsack = exact
) -> Decision:
    """Choose the jobs that are worth most with these numbers; limits beyond the capacity's are not shared."""
    worth = utility(completion_s(problem, numbers.workers, numbers.servers))
    worth = np.where(numbers.fits, worth, 0.0)
    reserved = problem.demands.limit[:, : capacity.size]
    return Decision(numbers.workers, numbers.servers, outer(worth, reserved, capacity), worth)


def smd_numbers(problem: Problem, rounding: Rounding, eps: float = 0.1) -> Sized:
    """Return the numbers of SMD: Algorithm 1, made whole by Algorithm 2, and the best next to that."""
    best = solve(problem, eps)
    whole = round_numbers(problem, best.workers, best.servers, rounding)
    return Sized(*polished(problem, *whole), best.fits)


def equal_numbers(problem: Problem) -> Sized:
    """Return the numbers of ESW: as many servers as workers, as many as fit."""
    demands = problem.demands
    both = demands.worker + demands.server
    room = np.divide(demands.limit, both, out=np.full(both.shape, np.inf), where=both > 0).min(axis=1)
    number = np.maximum(np.floor(room + WHOLE_COUNT).astype(np.int64), 1)
    return Sized(number, number, within_limits(demands, number, number))


def optimus_numbers(problem: Problem, utility: Utility | None = None) -> Sized:
    """Return the numbers of Optimus: one worker or one server more, whichever gains more, while any gains.

    What counts as gain is time, or `utility` as the paper has it. That is the same order, except that the
    utility of a job that is much too late does not change at all with one more.
    """
    numbers = np.ones((2, problem.constant.size), dtype=np.int64)
    fits = within_limits(problem.demands, *numbers)
    climbing = fits
    while climbing.any():
        w, p = numbers
        now = _score(problem, w, p, utility)
        after = np.stack([_score(problem, w + 1, p, utility), _score(problem, w, p + 1, utility)])
        climbing = climbing & (after.max(axis=0) > now)
        numbers[after.argmax(axis=0)[climbing], np.flatnonzero(climbing)] += 1
    return Sized(numbers[0], numbers[1], fits)


def best_numbers(problem: Problem) -> Sized:
    """Return the numbers with which each job finishes first, by trying all pairs."""
    n = problem.constant.size
    workers, servers, best_s = np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64), np.full(n, np.inf)
    fits = within_limits(problem.demands, workers, servers)
    job = np.flatnonzero(fits)
    top = np.floor(most_workers(problem.demands, np.ones(n)) + WHOLE_COUNT).astype(np.int64)
    job, w = job[_rows(top[job])], _upto(top[job])
    tops = np.floor(most_servers(problem.demands.take(job), w) + WHOLE_COUNT).astype(np.int64)
    cuts = np.searchsorted(np.cumsum(tops), np.arange(CHUNK, tops.sum(), CHUNK))
    for part in np.split(np.arange(job.size), cuts):
        row = part[_rows(tops[part])]
        jobs, p = job[row], _upto(tops[part])
        tau = completion_s(problem.take(jobs), w[row], p)
        order = np.lexsort((tau, jobs))
        of, first = np.unique(jobs[order], return_index=True)
        chosen = order[first]
        better = tau[chosen] < best_s[of]
        of, chosen = of[better], chosen[better]
        workers[of], servers[of], best_s[of] = w[row[chosen]], p[chosen], tau[chosen]
    return Sized(workers, servers, fits)


def _score(problem: Problem, workers: Ints, servers: Ints, utility: Utility | None) -> Floats:
    """What numbers are worth, the more the better; nothing beyond the limits."""
    tau = completion_s(problem, workers, servers)
    worth = -tau if utility is None else utility(tau)
    return np.where(within_limits(problem.demands, workers, servers), worth, -np.inf)


def _rows(counts: Ints) -> Ints:
    """Each position as often as its count."""
    return np.repeat(np.arange(counts.size), counts)


def _upto(counts: Ints) -> Ints:
    """1 to each count, one after the other."""
    upto: Ints = np.arange(1, counts.sum() + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    return upto
