"""SMD's inner problem (Yu et al., INFOCOM'21): how long w workers and p servers take, and what fits.

minimise  tau = constant + a w + b p + c w/p + d p/w + e/w + f/p
such that worker_r w + server_r p <= limit_r for each resource r, w >= 1, p >= 1, both real
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import PART


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
    worker, server, limit = (_along(array, workers) for array in fields_of(demands))
    need = worker * workers[..., None] + server * servers[..., None]
    fit: Mask = np.all(need <= limit * (1 + PART), axis=-1)
    return fit


def most_servers(demands: Demands, workers: Floats | Ints) -> Floats:
    """Return how many servers fit beside these workers, not rounded; the first axis is that of the jobs."""
    worker, server, limit = (_along(array, workers) for array in fields_of(demands))
    return least_quotient(limit - worker * workers[..., None], server, axis=-1)


def most_workers(demands: Demands, servers: Floats | Ints) -> Floats:
    """Return how many workers fit beside these servers, not rounded; the first axis is that of the jobs."""
    return most_servers(Demands(demands.server, demands.worker, demands.limit), servers)


def fields_of(demands: Demands) -> tuple[Floats, Floats, Floats]:
    """Return what a worker, a server and all may need."""
    return demands.worker, demands.server, demands.limit


def _along(array: Floats, numbers: Floats | Ints) -> Floats:
    """Give the array of jobs as many axes between its first and the rest as the numbers have more."""
    return array.reshape(array.shape[0], *(1,) * (numbers.ndim - 1), *array.shape[1:])


def quotient(above: Floats, below: Floats) -> Floats:
    """Divide; what is divided by nothing has no bound."""
    unbounded = np.full(np.broadcast_shapes(above.shape, below.shape), np.inf)
    quotient: Floats = np.divide(above, below, out=unbounded, where=below > 0)
    return quotient


def least_quotient(above: Floats, below: Floats, axis: int) -> Floats:
    """Return the least of the quotients along an axis."""
    least: Floats = quotient(above, below).min(axis=axis)
    return least
