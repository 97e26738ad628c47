"""Making traces: calibrated to published clusters, or plain Poisson arrivals with given mixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.model.limits import MAX_GPUS, MAX_S
from trainyard.model.zoo import zoo_profile
from trainyard.trace.presets import PLAIN, preset
from trainyard.trace.workload import GpuCounts, draw_labels

GPU_MIX = "1:0.7,8:0.3"  # how one is written
DEFAULT_MIX: Mapping[str, float] = {"1": 0.7, "2": 0.1, "4": 0.15, "8": 0.05}
ELASTIC_FACTOR = 4
MOST_GPUS = MAX_GPUS // ELASTIC_FACTOR
DIGITS = 10  # of a number that is looked at


def generate(name: str, jobs: int, seed: int) -> list[Job]:
    """Make jobs like those of a cluster, from Monday 0:00; fewer jobs are a shorter time at the same rate."""
    facts = preset(name)
    arrivals_rng, demand_rng, label_rng = _streams(jobs, seed)
    arrivals = facts.arrivals.draw(jobs, arrivals_rng)
    demand = facts.workload.draw(jobs, demand_rng)
    status = draw_labels(facts.status, jobs, label_rng)
    tenants = draw_labels(facts.tenants, jobs, label_rng) if demand.types is None else demand.types
    columns = (arrivals, demand.gpus, demand.duration_s, tenants, status)
    return [
        Job(f"{name}-{i}", arrival, gpus, duration, tenant=tenant, status=state)
        for i, (arrival, gpus, duration, tenant, state) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        )
    ]


def poisson(
    jobs: int,
    seed: int,
    rate_per_h: float = 10.0,
    gpu_mix: Mapping[str, float] = DEFAULT_MIX,
    duration_s: float = 3600.0,
) -> list[Job]:
    """Make jobs that come independently of each other, with exponential run times of a given mean."""
    _check_positive("rate-per-h", rate_per_h)
    _check_positive("duration-s", duration_s)
    arrivals_rng, demand_rng, _ = _streams(jobs, seed)
    arrivals = np.round(np.cumsum(arrivals_rng.exponential(3600 / rate_per_h, jobs)), 3)
    gpus = GpuCounts.of(gpu_mix).draw(jobs, demand_rng)
    times = np.maximum(1.0, np.round(demand_rng.exponential(duration_s, jobs), 3))
    if arrivals[-1] > MAX_S:
        what = (
            f"{jobs} jobs take {arrivals[-1]:g} s to come; it must be at most {MAX_S:g}: give a higher rate"
        )
        raise InputError(what, field="rate-per-h")
    rows = zip(arrivals.tolist(), gpus.tolist(), times.tolist(), strict=True)
    return [Job(f"{PLAIN}-{i}", *row) for i, row in enumerate(rows)]


def with_models(jobs: Sequence[Job], shares: Mapping[str, float], seed: int) -> list[Job]:
    """Give jobs models of the zoo by share, and make them elastic: from one GPU to four times the request."""
    profiles = {name: zoo_profile(name) for name in shares}
    models = draw_labels(shares, len(jobs), _streams(len(jobs), seed)[2].spawn(1)[0]).tolist()
    return [
        replace(job, model=name, profile=profiles[name], min_gpus=1, max_gpus=ELASTIC_FACTOR * job.gpus)
        for job, name in zip(jobs, models, strict=True)
    ]


def parse_shares(text: str, option: str, example: str) -> dict[str, float]:
    """Read shares written as name:share,name:share, as in the example; they need not add up to 1."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition(":")
        shares[name.strip()] = _share(share, part, option, example)
    if sum(shares.values()) <= 0:
        raise InputError(f"{option}: '{text}' has no share above 0; give at least one, as in {example}")
    return shares


def parse_gpu_mix(text: str, option: str) -> dict[str, float]:
    """Read shares by GPU count, such as 1:0.7,8:0.3."""
    shares = parse_shares(text, option, GPU_MIX)
    for gpus in shares:
        if not gpus.isdecimal() or len(gpus) > DIGITS or not 1 <= int(gpus) <= MOST_GPUS:
            what = f"'{gpus[:40]}' is not a number of GPUs from 1 to {MOST_GPUS}"
            raise InputError(f"{option}: {what}; write it as in {GPU_MIX}")
    return shares


def _share(text: str, part: str, option: str, example: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not isfinite(value) or value < 0:
        what = f"'{part.strip()}' is not name:share with a share of at least 0"
        raise InputError(f"{option}: {what}; write it as in {example}")
    return value


def _check_positive(field: str, value: float) -> None:
    if not (isfinite(value) and value > 0):
        raise InputError(f"{value:g} is not a number above 0", field=field)


def _streams(jobs: int, seed: int) -> list[np.random.Generator]:
    """Return a stream for arrivals, one for demand and one for labels: each can change without the others."""
    if jobs < 1:
        raise InputError(f"{jobs} is not a number of jobs; it must be at least 1", field="jobs")
    if seed < 0:
        raise InputError(f"{seed} is not a seed; it must be at least 0", field="seed")
    return np.random.Generator(np.random.PCG64(seed)).spawn(3)
