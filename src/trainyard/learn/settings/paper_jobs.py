"""The setting of the DL2 paper's simulator: nodes, eight kinds of jobs, arrivals, traces.

A node there has 8 CPU slots and 8 GPU slots (4 of them are one GPU), and the workers of two kinds of jobs
use no GPU. Our workers always sit on a GPU each, so a node here has 4 GPUs that stand for seats, which never
run out before its 8 CPUs do (every task takes 2), and its 8 GB of memory stand for the GPU slots.

Speeds are those that the authors measured (`paper_speeds`); between them, and where a measurement failed, a
linear radial basis function tells, as in the public simulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from trainyard.learn.settings.paper_speeds import SPEEDS
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Demand, Profile, Sync, Tables

Pattern = Literal["google", "uniform", "poisson"]

GPU_TYPE = "slot"
NETWORK_GBPS = 10.0  # inside a node too: where a task sits makes no difference to its speed
SEATS, CPUS, GPU_SLOTS = 4, 8.0, 8.0  # of a node
TASK_CPUS, WORKER_GPU_SLOTS = 2.0, 4.0
OFFSETS = 5  # a trace begins at one of this many first slots of the pattern
PATTERN_SLOTS = 100  # of the uniform and Poisson patterns
VALIDATION_SEED = 9973
HELD_OUT_SEED = 3_000_000_000  # from here on for reporting only: nothing is learnt or chosen on these traces


class PaperModel(NamedTuple):
    """One kind of job."""

    model: str
    epoch_size: int
    fraction: float  # of the longest job's epochs
    on_gpu: bool
    batch: int


# The catalogue of the public simulator.
KINDS = (
    PaperModel("resnet-50", 115, 0.30, True, 32),
    PaperModel("vgg-16", 115, 0.96, True, 32),
    PaperModel("resnext-110", 390, 0.05, True, 128),
    PaperModel("inception-bn", 120, 0.54, True, 128),
    PaperModel("seq2seq", 780, 0.95, True, 64),
    PaperModel("cnn-text-classification", 193, 0.46, False, 50),
    PaperModel("dssm", 349, 0.33, False, 256),
    PaperModel("wlm", 165, 0.23, True, 160),
)

# Jobs per slot, from Google's cluster trace as the public simulator carries it, by their number at most.
GOOGLE = {
    3: (
        "2 57 3 3 3 4 3 3 2 2 2 2 3 3 3 2 3 3 3 3 3 2 2 3 4 3 2 2 2 1 2 2 2 2 2 2 3 3 1 2 2 1 2 2 2 2 2 2 2 "
        "1 2 1 2 3 3 3 3 3 2 2 2 2 3 2 1 2 1 2 2 2 2 2 2 3 2"
    ),
    5: (
        "4 10 5 4 5 6 5 4 3 3 4 3 4 5 5 4 5 5 5 5 4 3 3 4 6 4 3 3 3 2 3 3 3 4 3 3 4 4 2 3 3 2 3 3 3 3 3 3 3 "
        "2 2 2 4 4 4 4 4 4 4 4 3 4 4 3 2 4 2 3 3 4 3 3 3 4 3"
    ),
    10: (
        "6 134 8 7 8 10 9 7 6 5 6 5 7 8 9 6 8 8 8 8 7 5 5 7 9 7 5 5 5 3 5 6 4 6 6 6 7 7 4 5 5 3 5 5 4 6 5 6 "
        "5 3 4 4 6 7 7 7 7 7 6 6 6 6 7 6 4 6 4 5 4 6 5 6 5 7 6"
    ),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """How large the cluster is, and what jobs come."""

    nodes: int
    jobs: int
    arrivals: int  # in one slot, at most
    epochs: int  # of a job whose fraction is 1
    slot_s: float = 1200.0
    most: int = 16  # workers, and servers, of a job
    pattern: Pattern = "google"
    kinds: tuple[PaperModel, ...] = KINDS


SETTINGS = {
    "testbed": Setting(6, 10, 5, 1000, slot_s=300.0),
    "s16e3k": Setting(16, 60, 3, 3000),
    "n48e4k": Setting(48, 60, 3, 4000),
    "mid96": Setting(96, 60, 3, 30_000),
    "small48": Setting(48, 60, 3, 80_000, most=32),
    "large": Setting(500, 200, 10, 30_000),
    # Ours: more work, or more jobs at a time, so that who gets what matters beside what is best for each.
    "s16e6k": Setting(16, 60, 3, 6000),
    "n24e4k": Setting(24, 80, 5, 4000),
    "n48e10k": Setting(48, 60, 3, 10_000),
    "h48e4k": Setting(48, 200, 10, 4000),
    "busy16": Setting(16, 120, 10, 4000),
    "busy48": Setting(48, 200, 10, 10_000),
}


def dl2_cluster(nodes: int) -> Cluster:
    """Nodes of the paper's kind."""
    return Cluster(
        f"dl2-{nodes}",
        tuple(
            Node(f"node-{i}", GPU_TYPE, SEATS, CPUS, GPU_SLOTS, NETWORK_GBPS, NETWORK_GBPS)
            for i in range(nodes)
        ),
    )


def dl2_trace(setting: Setting, random: np.random.RandomState) -> list[Job]:
    """Draw one trace, with the same draws in the same order as the public simulator."""
    arrivals = _pattern(setting, random)
    offset = random.randint(OFFSETS)
    slots = (slot for slot in _forever() for _ in range(arrivals[(slot + offset) % len(arrivals)]))
    jobs = []
    for number in range(setting.jobs):
        kind = setting.kinds[random.randint(0, len(setting.kinds))]
        random.rand()  # the error of a job's believed length, which is zero
        jobs.append(dl2_job(setting, kind, str(number + 1), next(slots), measured(kind)))
    return jobs


def validation_traces(setting: Setting, count: int) -> list[list[Job]]:
    """The traces on which the public simulator is validated: one after the other from one seed."""
    random = np.random.RandomState(VALIDATION_SEED)
    return [dl2_trace(setting, random) for _ in range(count)]


def dl2_job(setting: Setting, kind: PaperModel, job_id: str, slot: int, profile: Profile) -> Job:
    """One job: it starts with one worker and one server and may have as many as the setting allows."""
    return Job(
        job_id,
        slot * setting.slot_s,
        gpus=1,
        samples=float(int(kind.fraction * setting.epochs) * kind.epoch_size),
        model=kind.model,
        profile=profile,
        min_gpus=1,
        max_gpus=setting.most,
    )


@cache
def measured(kind: PaperModel) -> Profile:
    """Profile of a kind, with the speeds that were measured."""
    return profile_of(kind, Tables(workers_servers=SPEEDS[kind.model]))


def profile_of(kind: PaperModel, speeds: Tables) -> Profile:
    """What a kind's workers and servers hold, with the table that tells its speed; scaling is free."""
    return Profile(
        name=kind.model,
        batch=kind.batch,
        sync=Sync("ps"),
        worker=Demand(TASK_CPUS, WORKER_GPU_SLOTS if kind.on_gpu else 0.0),
        server=Demand(TASK_CPUS, 0.0),
        restart_s=0.0,
        tables=speeds,
    )


def _pattern(setting: Setting, random: np.random.RandomState) -> list[int]:
    """Jobs of each slot."""
    most = setting.arrivals
    if setting.pattern == "uniform":
        return [most] * PATTERN_SLOTS
    if setting.pattern == "poisson":
        drawn: list[int] = random.poisson(most, PATTERN_SLOTS).tolist()
        return [min(most, n) for n in drawn]
    return [min(most, int(n)) for n in GOOGLE[most].split()]


def _forever() -> Iterator[int]:
    slot = 0
    while True:
        yield slot
        slot += 1
