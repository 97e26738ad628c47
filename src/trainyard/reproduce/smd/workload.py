"""The random jobs of the SMD paper's evaluation, as far as it says what they are.

What it does not say is a field here: the unit of time in which utilities are meant, and how many GPUs and how
much storage an instance has (EC2's C4, which it names, has neither).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.speed.overlap import overlap_coefficients
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    Training,
    asynchronous,
    synchronous,
)
from trainyard.policy.size.smd.utility import Sigmoid

Amounts = tuple[float, float, float, float]  # GPUs, vCPUs, GB of memory, GB of storage

UNIT: Amounts = (600.0, 3400.0, 1400.0, 1200.0)  # of cluster capacity
# vCPUs and memory: c4.8xlarge. GPUs: p2.16xlarge, the largest of its time. Storage: so that one unit of
# capacity holds as many instances by storage as by memory.
INSTANCE: Amounts = (16.0, 36.0, 60.0, 50.0)
MOST_INSTANCES = 20  # that one job may have
# Seconds: so that the median of the least completion times is 8, the middle of the utilities' own middles.
SYNCHRONOUS_UNIT_S, ASYNCHRONOUS_UNIT_S = 14_400.0, 360.0
GBIT_PER_MB = 0.008


@dataclass(frozen=True, slots=True)
class Workload:
    """What decides about the jobs."""

    jobs: int
    synchronous: bool
    seed: int
    instance: Amounts = INSTANCE
    time_unit_s: float | None = None  # None: that of the kind of training


class Batch(NamedTuple):
    """The jobs of one interval."""

    problem: Problem  # in units of time
    utility: Sigmoid


def smd_jobs(workload: Workload) -> Batch:
    """Draw jobs; the same for both kinds of training."""
    rng, n = np.random.default_rng(workload.seed), workload.jobs
    training, demands = _training(rng, n), _demands(rng, n, workload.instance)
    make = synchronous if workload.synchronous else asynchronous
    unit_s = workload.time_unit_s or (SYNCHRONOUS_UNIT_S if workload.synchronous else ASYNCHRONOUS_UNIT_S)
    # Every term of the completion time is a multiple of the iterations.
    training = replace(training, iterations=training.iterations / unit_s)
    utility = Sigmoid(rng.uniform(1, 100, n), rng.uniform(4, 6, n), rng.uniform(1, 15, n))
    return Batch(make(training, demands), utility)


def _training(rng: np.random.Generator, n: int) -> Training:
    layers = [_layers(rng, int(count)) for count in rng.integers(10, 101, n)]
    mini_batch = _whole(rng, 10, 100, n)
    return Training(
        iterations=_whole(rng, 50, 200, n),
        eta=np.array([eta for eta, _, _ in layers]).reshape(n, 3),
        global_batch=_whole(rng, 1, 100, n) * mini_batch,
        mini_batch=mini_batch,
        forward_s=np.array([forward for _, forward, _ in layers]),
        backward_s=np.array([backward for _, _, backward in layers]),
        model_gbit=rng.uniform(30, 575, n) * GBIT_PER_MB,
        network_gbps=rng.uniform(5, 20, n),
        worker_s=rng.uniform(3, 4, n),
        server_s=rng.uniform(0, 0.01, n),
        concurrency=rng.uniform(0, 1, n),
    )


def _layers(rng: np.random.Generator, count: int) -> tuple[tuple[float, float, float], float, float]:
    """What remains visible of a network's times with wait-free communication, and its times."""
    forward, backward = rng.uniform(0.001, 0.5, count), rng.uniform(0.001, 0.3, count)
    one_way = rng.uniform(0.08, 0.5, count)
    eta = overlap_coefficients("wait-free", forward, backward, one_way)
    return eta, float(forward.sum()), float(backward.sum())


def _demands(rng: np.random.Generator, n: int, instance: Amounts) -> Demands:
    none = np.zeros(n)
    worker, server = (
        np.column_stack([gpus, _whole(rng, 1, 10, n), rng.uniform(2, 32, n), rng.uniform(5, 10, n)])
        for gpus in (_whole(rng, 0, 4, n), none)
    )
    return Demands(worker, server, np.outer(_whole(rng, 1, MOST_INSTANCES, n), instance))


def _whole(rng: np.random.Generator, least: int, most: int, n: int) -> Floats:
    return rng.integers(least, most + 1, n).astype(np.float64)
