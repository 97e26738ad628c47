"""Every size stage with every order and tune stage, with jobs of all kinds in one run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from conftest import checked
from stage_cases import ORDERS, TUNES
from stage_cases import SIZES as EVERY_SIZE
from trainyard.core.events import DecisionDue
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync, Tables
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy

SIZES = [size for size in EVERY_SIZE if size != "fixed"]
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


@pytest.mark.parametrize("size", [*SIZES, "drf(demand=best)"])
def test_nobody_is_there(size):
    yard = Yard(uniform_cluster(2), parse_policy(size).decide)
    assert yard.handle(DecisionDue(0.0)) == []


def test_elastic_sizes_use_what_fixed_ones_leave_idle():
    """Two small jobs on a large cluster: fixed sizes leave most of it empty."""
    jobs = [replace(job, profile=zoo_profile("resnet50"), max_gpus=8) for job in JOBS[1:2] * 2]
    jobs = [replace(job, job_id=f"j{i}") for i, job in enumerate(jobs)]
    cluster = uniform_cluster(2, 8)
    fixed = checked(cluster, jobs, "fifo").summary()["avg_jct_s"]
    for size in ("doubling", "optimus", "lookahead", "smd"):
        assert checked(cluster, jobs, f"fifo+{size}").summary()["avg_jct_s"] < 0.6 * fixed


def speeds_of(*rows):
    return Profile(batch=8, tables=Tables(workers_servers=tuple((float(w), 0.0, float(s)) for w, s in rows)))


@pytest.mark.parametrize("size", ["doubling(mode=explore)", "optimus(mode=learn)"])
def test_a_trial_that_finds_no_room_does_not_hold_a_job_back(size):
    """Eight GPUs cannot be tried out of six: the job goes on with what it learnt at one, two and four."""
    profile = speeds_of((1, 100), (2, 190), (4, 360), (8, 640))
    job = Job("a", 0.0, 1, samples=1e6, profile=profile, min_gpus=1, max_gpus=8)
    learnt = checked(uniform_cluster(1, 6), [job], f"fifo+{size}").summary()["avg_jct_s"]
    assert learnt < 1.6 * 1e6 / 360


@pytest.mark.parametrize("size", SIZES)
def test_orders_that_never_preempt_stop_nobody(size):
    """CPUs are short: who is resized may not find its place again, but keeps the old one."""
    jobs = [
        replace(job, job_id=f"{job.job_id}-{i}", arrival_s=job.arrival_s + 17.0 * i)
        for i in range(4)
        for job in JOBS
    ]
    for order in ("fifo", "fifo(fill=greedy)", "sjf"):
        result = checked(uniform_cluster(2, 4), jobs, f"{order}+{size}")
        assert result.summary()["preemptions"] == 0


@pytest.mark.parametrize("size", SIZES)
def test_a_strict_order_lets_nobody_pass(size):
    """A stream of small jobs does not hold up the large one behind the first of them."""
    small = [Job(f"s{i}", 10.0 * i, 1, 300.0, min_gpus=1, max_gpus=2) for i in range(40)]
    jobs = sorted([*small, Job("large", 5.0, 8, 60.0)], key=lambda job: job.arrival_s)
    result = checked(uniform_cluster(1, 8), jobs, f"fifo+{size}")
    assert result.story_of("large")[2].time_s <= 300.0


def test_more_gpus_than_there_are():
    """Nothing is worked out for sizes that cannot be."""
    job = Job("a", 0.0, 1, 60.0, profile=APART, min_gpus=1, max_gpus=1_000_000)
    for size in ("doubling", "optimus", "smd", "optimus(mode=learn)"):
        assert checked(uniform_cluster(1, 4), [job], f"fifo+{size}").summary()["completed"] == 1


def test_smd_knows_what_a_job_asks_for():
    job = Job("a", 0.0, 2, duration_s=1000.0, cpus=20.0, min_gpus=1, max_gpus=16)
    nodes = tuple(Node(f"n{i}", "GPU", 4, 24.0, 256.0) for i in range(4))
    assert checked(Cluster("c", nodes), [job], "fifo+smd").summary()["completed"] == 1


def test_smd_finds_the_best_numbers_on_one_node():
    """Inside a node there is ten times the bandwidth: (4, 8) there is faster than more workers elsewhere."""
    profile = Profile(
        batch=256,
        compute=Compute(0.02, {"V100": 0.002}),
        sync=Sync("ps", gradient_mb=100.0),
        worker=Demand(2.0, 16.0),
        server=Demand(1.0, 8.0),
    )
    nodes = tuple(Node(f"n{i}", "V100", 4, 16.0, 256.0) for i in range(4))
    job = Job("a", 0.0, 1, samples=1e6, profile=profile, min_gpus=1, max_gpus=8)
    result = checked(Cluster("c", nodes), [job], "fifo+smd")
    held = next(c.allocation for c in result.story_of("a") if c.allocation)
    assert (held.gpus, held.servers, len(held.shares)) == (4, 8, 1)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("doubling(explore_s=9)", "explore_s=9 has no meaning without mode=explore"),
        ("optimus(explore_s=9)", "explore_s=9 has no meaning without mode=learn"),
        ("smd(k=2)", "k=2 has no meaning without solver=frieze-clarke"),
        ("smd(eps=1e-9)", "eps=1e-09 is too small; give a number from 0.001 to 1"),
        ("smd(patience=0)", "patience=0 is too small"),
    ],
)
def test_parameters_without_meaning_are_refused(policy, message):
    with pytest.raises(InputError, match=message):
        parse_policy(policy)


def test_jobs_of_one_gpu_type_are_not_alike_to_those_of_any():
    """Both may have three GPUs, but there are only two of the type that one of them insists on."""
    nodes = (Node("a", "V100", 4, 8.0, 64.0), Node("b", "K80", 2, 8.0, 64.0))
    free = {"duration_s": 30.0, "min_gpus": 1, "max_gpus": 3}
    jobs = [Job("0", 0.0, 1, **free), Job("1", 10.0, 1, **free, gpu_type="K80"), Job("2", 0.0, 1, **free)]
    assert checked(Cluster("mixed", nodes), jobs, "smd").summary()["completed"] == 3
