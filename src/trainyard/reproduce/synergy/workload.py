"""The workload of the Synergy paper, draw by draw as its public simulator (msr-fiddle/synergy) makes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.zoo import zoo_profile
from trainyard.trace.gavel_times import LONG, LONG_SHARE, SHORT

GPUS_PER_NODE = 8
MEMORY_GB = 500.0
SEED = 42
DEPLOYED_LONG, DEPLOYED_SHORT = (
    (2.5, 2.7),
    (1.5, 2.5),
)  # log10 of minutes: the deployment has smaller traces
GPU_MIX = ((0.70, 1), (0.80, 2), (0.95, 4), (1.0, 8))  # cumulative shares
CLASSES = (
    ("alexnet", "resnet18", "resnet50", "mobilenet", "shufflenet"),
    ("gnmt", "transformer", "lstm"),
    ("m5", "deepspeech2"),
)
Split = tuple[int, int, int]  # per cent of image, language and speech jobs
SPLIT: Split = (20, 70, 10)


@dataclass(frozen=True, slots=True)
class Workload:
    """What decides about the jobs: how many, jobs per hour (None: all at once), mix of models and GPUs."""

    jobs: int
    per_h: float | None
    split: Split = SPLIT
    multi_gpu: bool = False
    small: bool = False  # the shorter jobs of the deployment
    seed: int = SEED


def synergy_cluster(nodes: int, cpus_per_gpu: float = 3.0) -> Cluster:
    """Return servers of 8 V100s with 500 GB and the CPUs of the chosen kind of server."""
    cpus = cpus_per_gpu * GPUS_PER_NODE
    made = (Node(f"V100-{i}", "V100", GPUS_PER_NODE, cpus, MEMORY_GB) for i in range(nodes))
    return Cluster("synergy", tuple(made))


def synergy_jobs(workload: Workload) -> list[Job]:
    """Make the jobs; how long one takes is meant with a proportional share of whatever server it is on."""
    profiles = {name: table_profile(name) for models in CLASSES for name in models}
    columns = (
        _arrivals(workload),
        _gpus(workload),
        durations(workload.seed, workload.small),
        models(workload.split),
    )
    return [
        Job(str(i), arrival, gpus, duration, model=name, profile=profiles[name])
        for i, (arrival, gpus, duration, name) in enumerate(zip(*columns, strict=False))
    ]


def table_profile(name: str) -> Profile:
    """Return the zoo's profile without communication: here speed depends on CPUs and memory alone."""
    return replace(zoo_profile(name), sync=None)


def durations(seed: int, small: bool = False) -> Iterator[float]:
    """Yield run times in seconds: mostly half an hour to a day, one in five up to a week."""
    draw = Random(seed)
    long, short = (DEPLOYED_LONG, DEPLOYED_SHORT) if small else (LONG, SHORT)
    while True:
        exponents = long if draw.random() >= 1 - LONG_SHARE else short
        yield 60 * 10 ** draw.uniform(*exponents)


def models(split: Split) -> Iterator[str]:
    """Yield models: of the class that lacks most of its share, in turn within the class."""
    counts = [0, 0, 0]
    while True:
        total = max(sum(counts), 1)
        lack = [share / 100 - count / total for share, count in zip(split, counts, strict=True)]
        chosen = lack.index(max(lack)) if any(counts) else 0
        yield CLASSES[chosen][counts[chosen] % len(CLASSES[chosen])]
        counts[chosen] += 1


def _arrivals(workload: Workload) -> Iterator[float]:
    draw, now = Random(workload.seed), 0.0
    for i in range(workload.jobs):
        if workload.per_h is None:
            yield round(0.001 * i, 3)
            continue
        now += math.ceil(-math.log(1.0 - draw.random()) / workload.per_h * 3600)
        draw.randint(0, 9)  # theirs draws a number here that nobody uses
        yield now


def _gpus(workload: Workload) -> Iterator[int]:
    draw = Random(workload.seed + 1)  # not in step with run times and arrivals
    while True:
        u = draw.random()
        yield next(gpus for share, gpus in GPU_MIX if u < share) if workload.multi_gpu else 1
