"""Episodes by the name of a setting: the paper's, and all-reduce jobs like those of Philly."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from trainyard.errors import InputError, did_you_mean
from trainyard.learn.episode import Scenario, Source
from trainyard.learn.workload import Split, mixed
from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.reproduce.dl2_workload import KINDS, SETTINGS, VALIDATION_SEED, Setting, dl2_cluster, dl2_trace
from trainyard.trace.generate import generate, with_models

# First seeds of the traces to learn from and to choose by; those that judge are the public simulator's.
TRAINING, VALIDATION = 1_000_000, 500_000
SEEDS = 2**31

# More jobs than nodes of the paper's kind can make as fast as they could be.
CONTENDED = {
    "s16e6k": Setting(16, 60, 3, 6000),
    "h48e4k": Setting(48, 200, 10, 4000),
}
# Philly-like: nodes of 8 V100s; (nodes, jobs).
PHILLY = {"philly": (8, 80), "philly-large": (32, 240)}
PHILLY_SLOT_S = 600.0
LOAD = 1.5  # work that comes, as part of what all GPUs could do at the sizes asked for
LONGEST_S = 12 * 3600.0
MODELS = {"resnet50": 3.0, "vgg16": 1.0, "bert-large": 2.0, "gpt2": 2.0, "inception-v3": 1.0}

NAMES = (*SETTINGS, *CONTENDED, *PHILLY)


def dl2_split(text: str) -> Split:
    """Return the episodes of a setting, or of several in turn (a+b)."""
    names = text.split("+")
    for name in names:
        if name not in NAMES:
            raise InputError(f"unknown setting '{name}'{did_you_mean(name, NAMES)}")
    splits = [_philly(*PHILLY[name]) if name in PHILLY else _paper(name) for name in names]
    return splits[0] if len(splits) == 1 else mixed(splits)


def _paper(name: str) -> Split:
    setting = (SETTINGS | CONTENDED)[name]
    cluster = dl2_cluster(setting.nodes)
    speed = SpeedModel(cluster)

    def source(first: int) -> Source:
        def scenario(number: int) -> Scenario:
            jobs = dl2_trace(setting, np.random.RandomState((first + number) % SEEDS))
            return Scenario(cluster, jobs, setting.slot_s, speed)

        return scenario

    @cache
    def judged(upto: int) -> list[list[Job]]:
        random = np.random.RandomState(VALIDATION_SEED)
        return [dl2_trace(setting, random) for _ in range(upto)]

    def held_out(number: int) -> Scenario:
        jobs = judged(-(-(number + 1) // 10) * 10)[number]
        return Scenario(cluster, jobs, setting.slot_s, speed)

    names = tuple(kind.model for kind in KINDS)
    return Split(source(TRAINING), source(VALIDATION), held_out, setting.slot_s, names)


def _philly(nodes: int, count: int) -> Split:
    cluster = uniform_cluster(nodes, 8, gpu_type="V100")
    speed = SpeedModel(cluster)

    def source(first: int) -> Source:
        def scenario(number: int) -> Scenario:
            jobs = philly_jobs(cluster, count, (first + number) % SEEDS)
            return Scenario(cluster, jobs, PHILLY_SLOT_S, speed)

        return scenario

    return Split(source(TRAINING), source(VALIDATION), source(0), PHILLY_SLOT_S, tuple(sorted(MODELS)))


def philly_jobs(cluster: Cluster, count: int, seed: int) -> list[Job]:
    """Elastic all-reduce jobs with Philly's sizes and run times, more than the cluster can bear."""
    drawn = generate("philly", count, seed)
    drawn = [
        replace(job, gpus=min(job.gpus, 8), duration_s=min(max(job.duration_s or 0.0, 300.0), LONGEST_S))
        for job in drawn
    ]
    work_s = sum(job.gpus * (job.duration_s or 0.0) for job in drawn)
    gaps = np.random.default_rng([seed, 1]).exponential(size=count).cumsum()
    arrivals = gaps / gaps[-1] * work_s / (LOAD * cluster.gpus)
    jobs = [replace(job, arrival_s=float(at)) for job, at in zip(drawn, arrivals - arrivals[0], strict=True)]
    return with_models(jobs, MODELS, seed)
