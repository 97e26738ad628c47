"""SMD's inner problem (Yu et al., INFOCOM'21): with how many workers w and servers p each job finishes first.

    minimise  tau = constant + a w + b p + c w/p + d p/w + e/w + f/p
    such that worker_r w + server_r p <= limit_r for each resource r, w >= 1, p >= 1, both real

Algorithm 1 leaves out the ratio with the widest range, bounds each of the others by the values nu of a
geometric grid, and minimises the one left out under these bounds; the best sum is at most (1 + eps) times
the least possible. The paper solves a linear program for every nu. With two variables and these ratios the
minimum is at a corner that can be written down, so that many jobs and nu are worked out at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainyard.model.arrays import Floats, Ints

Mask = npt.NDArray[np.bool_]

SLACK = 1e-9  # of nu: at the least value of a ratio the region would have no inside
ROUNDING = 1e-12  # of a limit
CHUNK = 1 << 16  # points of the grid at once: arrays that stay in the cache
TINY = 1e-300  # has a logarithm
STARTS = 24  # numbers of workers tried for a first bound

# The ratios: a w + b p (or a w and b p one by one), c w/p, d p/w, e/w and f/p.
LINE, SECOND_LINE, WORKERS_PER_SERVER, SERVERS_PER_WORKER, PER_WORKER, PER_SERVER = range(6)
LINES = (LINE, SECOND_LINE)
MIRRORED = {
    WORKERS_PER_SERVER: SERVERS_PER_WORKER,
    SERVERS_PER_WORKER: WORKERS_PER_SERVER,
    PER_SERVER: PER_WORKER,
}


@dataclass(frozen=True, slots=True)
class Training:
    """What the paper says of each of n jobs; forward and backward times are per sample."""

    iterations: Floats  # E
    eta: Floats  # (n, 3): the parts of forward, backward and communication time that are not hidden
    global_batch: Floats  # K, of all workers together: for synchronous training
    mini_batch: Floats  # m, of one worker: for asynchronous training
    forward_s: Floats  # t_f
    backward_s: Floats  # t_b
    model_gbit: Floats  # g
    network_gbps: Floats  # B
    worker_s: Floats  # beta1, overhead of each worker
    server_s: Floats  # beta2
    concurrency: Floats  # alpha, the part of the workers that send at once: for asynchronous training


@dataclass(frozen=True, slots=True)
class Demands:
    """What one worker and one server need, and what a job may have in all: (n, resources) each."""

    worker: Floats
    server: Floats
    limit: Floats

    def __post_init__(self) -> None:
        if not ((self.worker > 0).any(axis=1) & (self.server > 0).any(axis=1)).all():
            raise ValueError("a worker or a server that needs nothing: their number would have no bound")

    def take(self, jobs: Ints | Mask) -> Demands:
        """Return those of some jobs."""
        return Demands(self.worker[jobs], self.server[jobs], self.limit[jobs])


@dataclass(frozen=True, slots=True)
class Problem:
    """The inner problem of n jobs: the factors of tau, (n,) each, and what the jobs need."""

    constant: Floats
    workers: Floats  # a
    servers: Floats  # b
    workers_per_server: Floats  # c
    servers_per_worker: Floats  # d
    per_worker: Floats  # e
    per_server: Floats  # f
    demands: Demands

    def factors(self) -> tuple[Floats, ...]:
        """Return the factors in the order of the fields."""
        ratios = self.workers_per_server, self.servers_per_worker, self.per_worker, self.per_server
        return self.constant, self.workers, self.servers, *ratios

    def take(self, jobs: Ints | Mask) -> Problem:
        """Return the problem of some of the jobs."""
        constant, a, b, c, d, e, f = (factor[jobs] for factor in self.factors())
        return Problem(constant, a, b, c, d, e, f, self.demands.take(jobs))


class Fractional(NamedTuple):
    """The answer of Algorithm 1."""

    workers: Floats
    servers: Floats
    bound_s: Floats  # Psi: at least tau, at most (1 + eps) times the least tau; inf where nothing fits
    fits: Mask  # whether one worker and one server fit


def synchronous(training: Training, demands: Demands) -> Problem:
    """Return the problem of jobs whose workers share a global batch and wait for each other."""
    t, none = training, np.zeros_like(training.iterations)
    return Problem(
        constant=t.iterations * t.eta[:, 1] * t.backward_s,
        workers=t.iterations * t.worker_s,
        servers=t.iterations * t.server_s,
        workers_per_server=2 * t.iterations * t.eta[:, 2] * t.model_gbit / t.network_gbps,
        servers_per_worker=none,
        per_worker=t.iterations * t.eta[:, 0] * t.global_batch * t.forward_s,
        per_server=none,
        demands=demands,
    )


def asynchronous(training: Training, demands: Demands) -> Problem:
    """Return the problem of jobs whose workers go on without waiting for each other."""
    t, none = training, np.zeros_like(training.iterations)
    batch_s = t.eta[:, 0] * t.mini_batch * t.forward_s + t.eta[:, 1] * t.backward_s
    return Problem(
        constant=t.iterations * t.worker_s,
        workers=none,
        servers=none,
        workers_per_server=none,
        servers_per_worker=t.iterations * t.server_s,
        per_worker=t.iterations * batch_s,
        per_server=2 * t.iterations * t.concurrency * t.eta[:, 2] * t.model_gbit / t.network_gbps,
        demands=demands,
    )


def completion_s(problem: Problem, workers: Floats | Ints, servers: Floats | Ints) -> Floats:
    """Return tau; the first axis is that of the jobs."""
    constant, a, b, c, d, e, f = (_along(factor, workers) for factor in problem.factors())
    w, p = workers, servers
    tau: Floats = constant + (a + c / p) * w + (b + d / w) * p + e / w + f / p
    return tau


def within_limits(demands: Demands, workers: Floats | Ints, servers: Floats | Ints) -> Mask:
    """Return which numbers keep to the limits but for rounding; the first axis is that of the jobs."""
    worker, server, limit = (_along(array, workers) for array in _fields(demands))
    need = worker * workers[..., None] + server * servers[..., None]
    fit: Mask = np.all(need <= limit * (1 + SLACK), axis=-1)
    return fit


def most_servers(demands: Demands, workers: Floats | Ints) -> Floats:
    """Return how many servers fit beside so many workers, not rounded; the first axis is that of the jobs."""
    worker, server, limit = (_along(array, workers) for array in _fields(demands))
    return _least_quotient(limit - worker * workers[..., None], server, axis=-1)


def most_workers(demands: Demands, servers: Floats | Ints) -> Floats:
    """Return how many workers fit beside so many servers, not rounded; the first axis is that of the jobs."""
    return most_servers(Demands(demands.server, demands.worker, demands.limit), servers)


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


def _fields(demands: Demands) -> tuple[Floats, Floats, Floats]:
    return demands.worker, demands.server, demands.limit


def _along(array: Floats, numbers: Floats | Ints) -> Floats:
    """Give the array of jobs as many axes between its first and the rest as the numbers have more."""
    return array.reshape(array.shape[0], *(1,) * (numbers.ndim - 1), *array.shape[1:])


def _quotient(above: Floats, below: Floats) -> Floats:
    """Divide; what is divided by nothing has no bound."""
    unbounded = np.full(np.broadcast_shapes(above.shape, below.shape), np.inf)
    quotient: Floats = np.divide(above, below, out=unbounded, where=below > 0)
    return quotient


def _least_quotient(above: Floats, below: Floats, axis: int) -> Floats:
    least: Floats = _quotient(above, below).min(axis=axis)
    return least


# -- where a ratio is least ---------------------------------------------------------------------------------


class _Region(NamedTuple):
    """w >= least_w, p >= least_p, p >= p_per_w w, w >= w_per_p p, on_w w + on_p p <= limit; for n points."""

    least_w: Floats
    least_p: Floats
    p_per_w: Floats
    w_per_p: Floats
    on_w: Floats  # (rows, n), as the next two
    on_p: Floats
    limit: Floats

    def mirrored(self) -> _Region:
        """Exchange workers and servers."""
        return _Region(
            self.least_p, self.least_w, self.w_per_p, self.p_per_w, self.on_p, self.on_w, self.limit
        )

    def holds(self, w: Floats, p: Floats) -> Mask:
        """Whether points are inside."""
        rows = (self.on_w * w + self.on_p * p <= self.limit * (1 + ROUNDING)).all(axis=0)
        cone = (p >= self.p_per_w * w * (1 - ROUNDING)) & (w >= self.w_per_p * p * (1 - ROUNDING))
        inside: Mask = rows & cone & (w >= self.least_w) & (p >= self.least_p)
        return inside


def _corner(kind: int, region: _Region) -> tuple[Floats, Floats]:
    """Where a ratio is least; if that point is outside, nothing is inside.

    Each ratio is monotone in w and p, and what one of them may be is an interval that moves one way with the
    other: so one of them is at its end, and the other at the best that this leaves.
    """
    if kind in (SERVERS_PER_WORKER, PER_SERVER):
        p, w = _corner(MIRRORED[kind], region.mirrored())
        return w, p
    least_w, least_p, p_per_w, w_per_p, on_w, on_p, limit = region
    if kind == PER_WORKER:
        beside_least = _least_quotient(limit - on_p * least_p, on_w, axis=0)
        w = np.minimum(beside_least, _least_quotient(limit, on_w + on_p * p_per_w, axis=0))
        return w, np.maximum(least_p, p_per_w * w)
    w = np.maximum(least_w, w_per_p * least_p)
    if kind == WORKERS_PER_SERVER:
        return w, np.minimum(_least_quotient(limit - on_w * w, on_p, axis=0), _quotient(w, w_per_p))
    return w, np.maximum(least_p, p_per_w * w)


def _largest_line(line: Floats, demands: Demands) -> Floats:
    """The largest value of a linear term: at a corner, where two limits meet or at an end."""
    one = np.ones(len(line))
    top = most_workers(demands, one)
    largest = np.zeros(len(line))
    on_w, on_p, limit = (field.T for field in _fields(demands))
    first, second = np.triu_indices(len(limit), 1)
    across = on_w[first] * on_p[second] - on_w[second] * on_p[first]
    along = limit[first] * on_p[second] - limit[second] * on_p[first]
    meet = np.divide(along, across, out=np.ones_like(along), where=across != 0)
    for w in (one, top, *np.clip(meet, one, top)):
        largest = np.maximum(largest, line[:, 0] * w + line[:, 1] * most_servers(demands, w))
    return largest


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
    least, largest = _ranges(problem, lines)
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


def _value(problem: Problem, lines: Floats, kind: int, w: Floats, p: Floats) -> Floats:
    """Return the values of one ratio."""
    if kind in LINES:
        on_w, on_p = lines[kind].T
        line: Floats = on_w * w + on_p * p
        return line
    factor = problem.factors()[kind + 1]
    if kind == WORKERS_PER_SERVER:
        return factor * w / p
    if kind == SERVERS_PER_WORKER:
        return factor * p / w
    return factor / (w if kind == PER_WORKER else p)


def _ranges(problem: Problem, lines: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each ratio, (6, n)."""
    one, none = np.ones_like(problem.constant), np.zeros_like(problem.constant)
    whole = _Region(one, one, none, none, *(field.T for field in _fields(problem.demands)))
    least, largest = [], []
    for kind in range(6):
        least.append(_value(problem, lines, kind, *_corner(kind, whole)))
        if kind in LINES:
            largest.append(_largest_line(lines[kind], problem.demands))
            continue
        # w/p is largest where p/w is least; 1/w and 1/p are largest at one.
        per_one = kind in (PER_WORKER, PER_SERVER)
        far = (one, one) if per_one else _corner(MIRRORED[kind], whole)
        largest.append(_value(problem, lines, kind, *far))
    return np.array(least), np.array(largest)


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
        self.size = np.ceil(steps - ROUNDING).astype(np.int64) + 1
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
        room = known_s[job] * (1 + SLACK) - points.total_s - still
        steps = np.log(np.maximum(room / self.least[at, job], TINY)) / self.step
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
        w, p = _corner(group.left_out, region)
        inside = np.flatnonzero(region.holds(w, p))
        job, w, p = points.job[inside], w[inside], p[inside]
        some = group.problem.take(job)
        psi = points.total_s[inside] + _value(some, group.lines[:, job], group.left_out, w, p)
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
    p = np.clip(np.sqrt(_quotient(c * w + f, b + d / w)), 1.0, most_servers(problem.demands, w))
    tau: Floats = completion_s(problem, w, p).min(axis=1)
    return problem.constant + (1 + group.eps) * (tau - problem.constant)


def _bounded(group: _Group, points: _Points) -> _Region:
    """The region in which each ratio on the grid is at most its nu."""
    job, demands = points.job, group.problem.demands
    one, none = np.ones(job.size), np.zeros(job.size)
    at_least = {PER_WORKER: one, PER_SERVER: one, WORKERS_PER_SERVER: none, SERVERS_PER_WORKER: none}
    rows = [tuple(field.T[:, job] for field in _fields(demands))]
    for kind, nu in zip(group.on_grid, points.nu, strict=True):
        most = nu * (1 + SLACK)
        if kind in LINES:
            rows.append((*group.lines[kind, job].T[:, None], most[None]))
        else:
            factor = group.problem.factors()[kind + 1][job]
            at_least[kind] = np.maximum(at_least[kind], factor / most)
    return _Region(
        at_least[PER_WORKER],
        at_least[PER_SERVER],
        at_least[WORKERS_PER_SERVER],
        at_least[SERVERS_PER_WORKER],
        *(np.vstack(parts) for parts in zip(*rows, strict=True)),
    )
