"""Whatever a stage wants, a job that fits at some size runs in the end; `make starvation` runs many more."""

from __future__ import annotations

from random import Random

import pytest

from conftest import checked
from starvation_cases import Workload, failure, fits, named_policies, random_workload
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.rules import Rules

TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
SHORT = Cluster(  # of CPUs and memory
    "short", (Node("k", "K80", 8, 2.0, 16.0), Node("v", "V100", 2, 3.0, 2.0)), TYPES
)
MIXED = Cluster(
    "mixed",
    (
        Node("n0", "K80", 1, 3.0, 60.0),
        Node("n1", "V100", 1, 3.0, 60.0),
        Node("n2", "K80", 4, 12.0, 240.0),
    ),
    TYPES,
)
APART = Profile(
    batch=64,
    compute=Compute(0.01, {"V100": 0.001}),
    sync=Sync("ps", gradient_mb=50.0),
    worker=Demand(1.0, 1.0),
    server=Demand(1.0, 1.0),
)
HUNGRY = [
    Job("wide", 0.0, 3, duration_s=50.0, profile=APART, min_gpus=3, max_gpus=6),
    Job("rigid", 0.0, 4, duration_s=50.0, cpus=4.0),
    Job("small", 0.0, 1, duration_s=50.0, profile=APART),
]


@pytest.mark.parametrize("policy", named_policies())
def test_on_nodes_short_of_cpus_and_memory(policy):
    jobs = [job for job in HUNGRY if fits(job, SHORT.nodes)]
    assert len(jobs) == 3
    assert failure(policy, Workload(SHORT, tuple(jobs), Rules(until_s=1e6))) == ""


def test_a_gang_that_only_all_types_together_hold():
    jobs = (Job("six", 0.0, 6, duration_s=50.0),)
    assert failure("market(samples=16)", Workload(MIXED, jobs, Rules(until_s=1e6))) == ""


def test_sample_of_the_workloads():
    policies = named_policies()
    for number in range(6):
        draw = Random(f"test-{number}")
        work = random_workload(draw)
        for policy in draw.sample(policies, 8):
            assert failure(policy, work) == "", f"{policy} on workload test-{number}"


def test_fits_tries_all_ways():
    """Two workers with a CPU each, and a server: a node of two CPUs holds both or one of each."""
    nodes = [Node("a", "V100", 2, 2.0, 10.0), Node("b", "V100", 1, 1.0, 10.0)]
    assert fits(Job("j", 0.0, 2, duration_s=1.0, profile=APART), nodes)
    assert not fits(Job("j", 0.0, 3, duration_s=1.0, profile=APART), nodes)
    assert not fits(Job("j", 0.0, 1, duration_s=1.0, gpu_type="K80"), nodes)


def test_an_elastic_job_that_asks_for_more_than_there_is_gets_what_there_is():
    result = checked(MIXED, [Job("big", 0.0, 9, duration_s=50.0, min_gpus=2, max_gpus=9)], "fifo")
    assert result.summary()["completed"] == 1
    assert max(c.allocation.gpus for c in result.story_of("big") if c.allocation is not None) == 6


@pytest.mark.parametrize("policy", ["las", "ftf", "las+tune", "ftf+opt"])
def test_turns_in_rounds_shorter_than_a_restart(policy):
    """Before, las took 11,480 s and 512 restarts."""
    jobs = [Job(f"j{i}", 0.0, 1, duration_s=1000.0) for i in range(2)]
    one = Cluster("one", (Node("n0", "V100", 1, 3.0, 60.0),), {"V100": TYPES["V100"]})
    summary = checked(one, jobs, policy, round_s=10.0, restart_s=30.0).summary()
    assert summary["restarts"] <= 2 * 1000 / 300
    assert summary["makespan_s"] <= 2000 + 40 * summary["restarts"] + 20
