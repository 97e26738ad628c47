"""Every size stage with every order and tune stage, with jobs of all kinds in one run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from conftest import ORDERS, checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.zoo import zoo_profile

SIZES = [
    "drf",
    "doubling",
    "doubling(mode=explore,explore_s=30)",
    "optimus",
    "optimus(mode=learn,explore_s=30)",
    "smd",
    "smd(solver=milp,charge=used)",
    "smd(solver=frieze-clarke,utility=inverse)",
]
TUNES = ["proportional", "greedy", "tune", "opt"]
SERVED = Profile(batch=64, compute=Compute(0.01, {"GPU": 0.002}), sync=Sync("ps", gradient_mb=80.0))
APART = replace(SERVED, worker=Demand(1.0, 8.0), server=Demand(1.0, 4.0))
PUSHED = replace(
    APART, scaling="weak", sync=Sync("ps", mode="async", gradient_mb=80.0, async_share=0.5), restart_s=2.0
)
JOBS = [
    Job("rigid", 0.0, 4, 90.0),
    Job("ring", 0.0, 2, 200.0, profile=zoo_profile("resnet50"), min_gpus=1, max_gpus=8),
    Job("served", 10.0, 2, 150.0, profile=SERVED, min_gpus=1, max_gpus=4),
    Job("sync", 10.0, 2, 120.0, profile=APART, min_gpus=1, max_gpus=6),
    Job("async", 25.0, 1, 180.0, profile=PUSHED, min_gpus=1, max_gpus=6),
    Job("linear", 40.0, 1, 100.0, min_gpus=1, max_gpus=3, weight=2.0),
    Job("hungry", 50.0, 1, 60.0, cpus=6.0, memory_gb=30.0),
]


@pytest.mark.parametrize("size", SIZES)
def test_every_size_with_every_order_and_tune(size):
    cluster = uniform_cluster(2, 4)
    for order, tune in product(ORDERS, TUNES):
        result = checked(cluster, JOBS, f"{order}+{size}+{tune}")
        assert result.summary()["completed"] == len(JOBS), (order, tune)


def test_elastic_sizes_use_what_fixed_ones_leave_idle():
    """Two small jobs on a large cluster: fixed sizes leave most of it empty."""
    jobs = [replace(job, profile=zoo_profile("resnet50"), max_gpus=8) for job in JOBS[1:2] * 2]
    jobs = [replace(job, job_id=f"j{i}") for i, job in enumerate(jobs)]
    cluster = uniform_cluster(2, 8)
    fixed = checked(cluster, jobs, "fifo").summary()["avg_jct_s"]
    for size in ("doubling", "optimus", "smd"):
        assert checked(cluster, jobs, f"fifo+{size}").summary()["avg_jct_s"] < 0.6 * fixed
