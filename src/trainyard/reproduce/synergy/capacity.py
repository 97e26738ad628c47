"""How many jobs per hour a cluster can finish: with proportional shares, and with the best shares there are.

The best is a linear program over GPU-hours per hour: t_mk of them go to model m at rung k of its ladder.

    maximise  jobs/h
    such that sum_k t_mk speed_mk = jobs/h x share_m x hours of a job   for each model m
              sum t_mk, sum t_mk cpus_mk, sum t_mk memory_mk <= GPUs    (in proportional shares)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainyard.model.job import Job
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.reproduce.synergy.workload import (
    CLASSES,
    GPU_MIX,
    Split,
    synergy_cluster,
    table_profile,
)
from trainyard.solve.program import Rows, maximise
from trainyard.trace.gavel_times import LONG, LONG_SHARE, SHORT


class Capacity(NamedTuple):
    """Jobs per hour."""

    proportional: float
    tuned: float


def mean_hours() -> float:
    """Mean run time of a job with its proportional share."""

    def mean(low: float, high: float) -> float:
        return (10**high - 10**low) / ((high - low) * math.log(10)) / 60

    return LONG_SHARE * mean(*LONG) + (1 - LONG_SHARE) * mean(*SHORT)


def mean_gpus() -> float:
    """Mean number of GPUs of a job in the multi-GPU traces."""
    shares = np.diff([share for share, _ in GPU_MIX], prepend=0.0)
    return float(shares @ np.array([gpus for _, gpus in GPU_MIX]))


def capacity(split: Split, cpus_per_gpu: float, gpus: int = 128) -> Capacity:
    """Jobs of one GPU each that a cluster can finish per hour."""
    cluster = synergy_cluster(1, cpus_per_gpu)
    sensitivity = Sensitivity(cluster, SpeedModel(cluster))
    seat = ((cluster.nodes[0].node_id, 1),)
    names = [(name, part / len(own)) for part, own in zip(split, CLASSES, strict=True) for name in own]
    ladders = [sensitivity.ladder(Job(name, 0.0, 1, profile=table_profile(name)), seat) for name, _ in names]
    owner = np.repeat(np.arange(len(names)), [len(ladder.cpus) for ladder in ladders])
    rungs = np.arange(owner.size)
    cpus = np.concatenate([ladder.cpus for ladder in ladders])
    memory = np.concatenate([ladder.memory for ladder in ladders])
    speed = np.concatenate([ladder.speed for ladder in ladders])
    at_most = Rows(
        np.repeat(np.arange(3), owner.size),
        np.tile(rungs, 3),
        np.concatenate([np.ones(owner.size), cpus, memory]),
        np.full(3, float(gpus)),
    )
    work = np.array([part for _, part in names]) / sum(split) * mean_hours()
    models = np.arange(len(names))
    equal = Rows(
        np.concatenate([owner, models]),
        np.concatenate([rungs, np.full(models.size, owner.size)]),
        np.concatenate([speed, -work]),
        np.zeros(models.size),
    )
    jobs_per_h = np.append(np.zeros(owner.size), 1.0)
    best = maximise(jobs_per_h, at_most, equal, np.full(owner.size + 1, np.inf))
    assert best is not None  # nothing at all is always possible
    return Capacity(gpus / mean_hours(), float(best[-1]))
