"""Elastic all-reduce jobs on a small Philly: its arrivals, requests and run times, the zoo's models.

A cluster of 8-GPU nodes gets as much of Philly's stream of jobs as makes the given load: the work of all
jobs, run as requested, by what the GPUs could do meanwhile. Arrivals keep Philly's hours of the week, its
bursts and its quiet and busy weeks, from a random hour on; the largest bursts are smaller as the cluster is.
Run times end at six hours, so that an episode does. A job keeps the batch of its request (the zoo's for each
GPU asked for) at any size, so that more GPUs bring less and less, and resizing costs it ten seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.zoo import FOR_OLDER_GPUS, ZOO
from trainyard.trace.presets import Preset, preset
from trainyard.trace.workload import Asked

GPUS_PER_NODE, GPU_TYPE = 8, "V100"
NETWORK_GBPS = 100.0  # InfiniBand
LONGEST_S = 6 * 3600.0
MOST_REQUESTED = 32  # GPUs of one job; Philly has one in 2,000 with more
FACTOR = 8  # a job may have this many times the GPUs it asked for: one GPU becomes a node
LARGEST_BURST = 646 / 3205  # jobs that came together in Philly, for each of its GPUs
MEASURED = 100_000  # jobs that tell the mean work


@dataclass(frozen=True, slots=True)
class RingSetting:
    """How large the cluster is, and how many jobs come how fast."""

    nodes: int
    jobs: int
    load: float = 1.5
    slot_s: float = 600.0


RING_SETTINGS = {"ring16": RingSetting(16, 240), "ring64": RingSetting(64, 960)}


def philly_cluster(nodes: int) -> Cluster:
    """Nodes of 8 V100s, with Philly's network between them."""
    plain = uniform_cluster(nodes, GPUS_PER_NODE, GPU_TYPE, f"philly-{nodes}")
    return replace(plain, nodes=tuple(replace(node, network_gbps=NETWORK_GBPS) for node in plain.nodes))


def philly_jobs(setting: RingSetting, seed: int) -> list[Job]:
    """Draw the jobs of one episode."""
    rng, philly, gpus = np.random.default_rng(seed), preset("philly"), setting.nodes * GPUS_PER_NODE
    per_h = setting.load * gpus / _gpu_hours()
    hourly = np.roll(philly.arrivals.hourly, -rng.integers(philly.arrivals.hourly.size))
    batches = replace(philly.arrivals.batches, tail_max=max(LARGEST_BURST * gpus, 11.0))
    stream = replace(philly.arrivals, hourly=hourly * (per_h / hourly.mean()), batches=batches)
    arrivals = stream.draw(setting.jobs, rng)
    demand, models = _demand(philly, setting.jobs, rng), rng.choice(len(FOR_OLDER_GPUS), setting.jobs)
    columns = (arrivals - arrivals[0], demand.gpus, demand.duration_s, models)
    return [
        _job(f"job{i:03}", FOR_OLDER_GPUS[model], arrival, asked, duration)
        for i, (arrival, asked, duration, model) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]


def _job(job_id: str, model: str, arrival_s: float, gpus: int, duration_s: float) -> Job:
    return Job(
        job_id,
        arrival_s,
        gpus,
        duration_s,
        model=model,
        profile=_profile(model, gpus),
        min_gpus=1,
        max_gpus=FACTOR * gpus,
    )


@cache
def _profile(model: str, gpus: int) -> Profile:
    """A model of the zoo with the batch of these GPUs, at any size."""
    own = ZOO[model].profile
    batch = own.batch * gpus if own.scaling == "weak" else own.batch
    return replace(own, batch=batch, scaling="strong")


def _demand(philly: Preset, jobs: int, rng: np.random.Generator) -> Asked:
    """Requests and run times, both cut at their limits."""
    drawn = philly.workload.draw(jobs, rng)
    gpus, duration_s = np.minimum(drawn.gpus, MOST_REQUESTED), np.minimum(drawn.duration_s, LONGEST_S)
    return Asked(gpus, duration_s)


@cache
def _gpu_hours() -> float:
    """Mean work of a job."""
    demand = _demand(preset("philly"), MEASURED, np.random.default_rng(0))
    return float((demand.gpus * demand.duration_s).mean()) / 3600
