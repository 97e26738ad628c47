"""A job that fits at some size runs, whatever the policy would rather give it; no input is to blame then."""

from __future__ import annotations

import pytest

from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.impossible import why_never

SMALL = uniform_cluster(2, 4)
LARGE = Job("large", 0.0, 12, 100.0, min_gpus=1)
POLICIES = [
    "fifo",
    "srtf",
    "las+spread",
    "gavel",
    "hadar",
    "allox",
    "srtf+optimus",
    "srtf+drf",
    "market",
    "sia",
]


def run(jobs, policy, cluster=SMALL, **rules):
    return Simulator(cluster, jobs, parse_policy(policy), Rules(**rules)).run()


@pytest.mark.parametrize("policy", POLICIES)
def test_who_asks_for_more_than_there_is_runs_with_less(policy):
    assert run([LARGE], policy).summary()["completed"] == 1


def test_memory_beside_each_gpu_counts_as_well():
    job = Job("fat", 0.0, 8, 100.0, min_gpus=1, memory_gb=8 * 200.0)
    assert run([job], "fifo").summary()["completed"] == 1
    assert run([job], "srtf+drf").summary()["completed"] == 1


def test_fewer_servers_are_better_than_none():
    """Two workers and two servers of three CPUs: three nodes have room for one of them each."""
    nodes = tuple(Node(f"V100-{i}", "V100", 4, 5.0, 100.0) for i in range(3))
    profile = Profile(
        "served",
        compute=Compute(per_sample_s={"V100": 0.01}),
        sync=Sync(kind="ps", gradient_mb=1.0),
        worker=Demand(3.0, 1.0),
        server=Demand(3.0, 1.0),
    )
    job = Job("spread", 0.0, 2, 100.0, profile=profile)
    assert run([job], "fifo", Cluster("thin", nodes)).summary()["completed"] == 1


def test_a_job_that_would_run_alone_has_no_limit_to_blame():
    assert why_never(SMALL, LARGE, parse_policy("srtf+drf"), Rules()) == ""
    assert why_never(SMALL, Job("a", 0.0, 8, 10.0), parse_policy("srtf+smd"), Rules()) == ""


def test_who_finds_no_place_alone_is_told_why():
    apart = Job("a", 0.0, 5, 10.0)
    policy = parse_policy("fifo+pack(consolidate=require)")
    assert why_never(SMALL, apart, policy, Rules()) in (
        "",
        "needs 5 GPUs on one node; 4 are free on the best",
    )
