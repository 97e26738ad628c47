"""Algorithm 1 of SMD (Yu et al., INFOCOM'21): with how many workers and servers each job finishes first.

It leaves out the ratio with the widest range, bounds each of the others by the values nu of a geometric
grid, and minimises the one left out under these bounds; the best sum is at most (1 + eps) times the least
possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import FINE_PART, LEAST_POSITIVE, PART
from trainyard.policy.size.smd.corners import (
    LINES,
    PER_SERVER,
    PER_WORKER,
    SERVERS_PER_WORKER,
    WORKERS_PER_SERVER,
    Region,
    corner,
    ranges_of,
    value_of,
)
from trainyard.policy.size.smd.problem import (
    Problem,
    completion_s,
    fields_of,
    most_servers,
    most_workers,
    quotient,
    within_limits,
)

CHUNK = 1 << 16  # points of the grid at once: arrays that stay in the cache
STARTS = 24  # numbers of workers tried for a first bound


class Fractional(NamedTuple):
    """The answer of Algorithm 1."""

    workers: Floats
    servers: Floats
    bound_s: Floats  # Psi: at least tau, at most (1 + eps) times the least tau; inf where nothing fits
    fits: Mask  # whether one worker and one server fit


def solve(problem: Problem, eps: float = 0.1, merge: bool = True, prune: bool = True) -> Fractional:
    """Return w and p whose tau is at most (1 + eps) times the least possible, by Algorithm 1.

    With `merge` a w + b p counts as one ratio; with `prune` points of the grid are skipped that cannot be
    better than what is known. Both only save work.
    """
    n = problem.constant.size
    one = np.ones(n)
    fits = within_limits(problem.demands, one, one)
    answer = Fractional(one, one.copy(), np.full(n, np.inf), fits)
    for jobs, group in _groups(problem, np.flatnonzero(fits), eps, merge):
        for whole, part in zip(answer[:3], _search(group, prune), strict=True):
            whole[jobs] = part
    return answer


# -- jobs alike ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Group:
    """Jobs with the same ratios, of which the same one is left out of the grid."""

    problem: Problem
    lines: Floats  # (2, n, 2): factors of w and p in the linear terms
    left_out: int
    on_grid: tuple[int, ...]
    least: Floats  # (6, n): of each ratio
    largest: Floats
    eps: float


def _groups(problem: Problem, jobs: Ints, eps: float, merge: bool) -> Iterator[tuple[Ints, _Group]]:
    """Sort jobs by their ratios and the one that is left out."""
    problem = problem.take(jobs)
    lines = _lines(problem, merge)
    present = np.vstack([(lines > 0).any(axis=2), np.array(problem.factors()[3:]) > 0])
    least, largest = ranges_of(problem, lines)
    width = np.divide(largest, least, out=np.zeros_like(least), where=present)
    left_out = width.argmax(axis=0)
    code = left_out + 8 * (present * 2 ** np.arange(6)[:, None]).sum(axis=0)
    for one in np.unique(code):
        some = np.flatnonzero(code == one)
        out = int(left_out[some[0]])
        on_grid = tuple(kind for kind in range(6) if present[kind, some[0]] and kind != out)
        own = lines[:, some], out, on_grid, least[:, some], largest[:, some], eps
        yield jobs[some], _Group(problem.take(some), *own)


def _lines(problem: Problem, merge: bool) -> Floats:
    a, b, none = problem.workers, problem.servers, np.zeros_like(problem.workers)
    terms = ((a, b), (none, none)) if merge else ((a, none), (none, b))
    return np.stack([np.column_stack(term) for term in terms])


# -- the grid -----------------------------------------------------------------------------------------------


class _Points(NamedTuple):
    """Points of the grids of several jobs, complete or not."""

    job: Ints
    total_s: Floats  # constant and all nu
    nu: tuple[Floats, ...]  # of the ratios on the grid, in order


class _Grid:
    """The values nu of each ratio: the least, (1 + eps) times that, and so on; last of all the largest."""

    def __init__(self, group: _Group) -> None:
        self.constant = group.problem.constant
        self.least_left_out = group.least[group.left_out]
        self.least, self.largest = (bounds[list(group.on_grid)] for bounds in (group.least, group.largest))
        self.step = np.log1p(group.eps)
        steps = np.log(self.largest / self.least) / self.step
        self.size = np.ceil(steps - FINE_PART).astype(np.int64) + 1
        self.growth = (1 + group.eps) ** np.arange(self.size.max(initial=0))

    def chunks(self, known_s: Floats) -> Iterator[_Points]:
        """Yield all points that may be better than what is known, which may change meanwhile."""
        job = np.arange(self.constant.size)
        points = _Points(job, self.constant, ())
        if len(self.size):
            points = self._expand(points, known_s)
        for some in np.split(np.arange(points.job.size), self._cuts(points, known_s)):
            chunk = _Points(points.job[some], points.total_s[some], tuple(nu[some] for nu in points.nu))
            for _ in self.size[1:]:
                chunk = self._expand(chunk, known_s)
            if chunk.job.size:
                yield chunk

    def _cuts(self, points: _Points, known_s: Floats) -> Ints:
        """Where to cut unfinished points so that few enough come of them."""
        if len(self.size) < 2:
            return np.arange(CHUNK, points.job.size, CHUNK)
        each = self._count(points, known_s) * self.size[2:, points.job].prod(axis=0)
        upto = np.cumsum(each)
        return np.searchsorted(upto, np.arange(CHUNK, upto[-1] if upto.size else 0, CHUNK))

    def _count(self, points: _Points, known_s: Floats) -> Ints:
        """How many values of the next ratio leave a chance to be better than what is known."""
        at, job = len(points.nu), points.job
        still = self.least[at + 1 :, job].sum(axis=0) + self.least_left_out[job]
        room = known_s[job] * (1 + PART) - points.total_s - still
        steps = np.log(np.maximum(room / self.least[at, job], LEAST_POSITIVE)) / self.step
        size = self.size[at, job]
        some = np.clip(np.floor(steps) + 1, 0, size).astype(np.int64)
        count: Ints = np.where(room >= self.largest[at, job], size, some)
        return count

    def _expand(self, points: _Points, known_s: Floats) -> _Points:
        """Give each point the values of its next ratio."""
        at = len(points.nu)
        count = self._count(points, known_s)
        row = np.repeat(np.arange(count.size), count)
        number = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
        job = points.job[row]
        nu = np.minimum(self.least[at, job] * self.growth[number], self.largest[at, job])
        return _Points(job, points.total_s[row] + nu, (*(before[row] for before in points.nu), nu))


def _search(group: _Group, prune: bool) -> tuple[Floats, Floats, Floats]:
    """Return w, p and Psi of the best point of each job's grid."""
    n = group.problem.constant.size
    workers, servers, best_s = np.ones(n), np.ones(n), np.full(n, np.inf)
    known_s = _first_bound(group) if prune else np.full(n, np.inf)
    for points in _Grid(group).chunks(known_s):
        region = _bounded(group, points)
        w, p = corner(group.left_out, region)
        inside = np.flatnonzero(region.holds(w, p))
        job, w, p = points.job[inside], w[inside], p[inside]
        some = group.problem.take(job)
        psi = points.total_s[inside] + value_of(some, group.lines[:, job], group.left_out, w, p)
        better = np.flatnonzero(psi < best_s[job])
        better = better[np.lexsort((psi[better], job[better]))]
        of, first = np.unique(job[better], return_index=True)
        chosen = better[first]
        workers[of], servers[of], best_s[of] = w[chosen], p[chosen], psi[chosen]
        if prune:
            np.minimum(known_s, best_s, out=known_s)
    return workers, servers, best_s


def _first_bound(group: _Group) -> Floats:
    """A Psi that some point of the grid reaches: that just above a good (w, p), found by trying some w."""
    problem = group.problem
    top = most_workers(problem.demands, np.ones_like(problem.constant))
    w = top[:, None] ** np.linspace(0, 1, STARTS)
    b, c, d, f = (
        factor[:, None]
        for factor in (
            problem.servers,
            problem.workers_per_server,
            problem.servers_per_worker,
            problem.per_server,
        )
    )
    # For a given w the best p has a formula, since tau is convex in p.
    p = np.clip(np.sqrt(quotient(c * w + f, b + d / w)), 1.0, most_servers(problem.demands, w))
    tau: Floats = completion_s(problem, w, p).min(axis=1)
    return problem.constant + (1 + group.eps) * (tau - problem.constant)


def _bounded(group: _Group, points: _Points) -> Region:
    """The region in which each ratio on the grid is at most its nu."""
    job, demands = points.job, group.problem.demands
    one, none = np.ones(job.size), np.zeros(job.size)
    at_least = {PER_WORKER: one, PER_SERVER: one, WORKERS_PER_SERVER: none, SERVERS_PER_WORKER: none}
    rows = [tuple(field.T[:, job] for field in fields_of(demands))]
    for kind, nu in zip(group.on_grid, points.nu, strict=True):
        most = nu * (1 + PART)
        if kind in LINES:
            rows.append((*group.lines[kind, job].T[:, None], most[None]))
        else:
            factor = group.problem.factors()[kind + 1][job]
            at_least[kind] = np.maximum(at_least[kind], factor / most)
    return Region(
        at_least[PER_WORKER],
        at_least[PER_SERVER],
        at_least[WORKERS_PER_SERVER],
        at_least[SERVERS_PER_WORKER],
        *(np.vstack(parts) for parts in zip(*rows, strict=True)),
    )
