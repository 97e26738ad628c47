"""A job that can never run is refused with its limit, before the run if that is certain; no other job is."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.impossible import why_never

SMALL = uniform_cluster(2, 4)
LARGE = Job("large", 0.0, 12, 100.0, min_gpus=1)


def run(jobs, policy, cluster=SMALL, **rules):
    return Simulator(cluster, jobs, parse_policy(policy), Rules(**rules)).run()


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las+spread", "gavel", "hadar", "allox"])
def test_a_policy_of_whole_gangs_names_the_job_before_it_starts(policy):
    jobs, asked = [Job("fine", 0.0, 1, 1e6), LARGE], []
    simulator = Simulator(SMALL, jobs, parse_policy(policy), progress=asked.append)
    with pytest.raises(InputError) as caught:
        simulator.run()
    assert "job 'large' needs 12 GPUs; the cluster has 8" in str(caught.value)
    assert f"policy {policy} gives it no fewer than 12 GPUs" in str(caught.value)
    assert asked == []


@pytest.mark.parametrize("policy", ["srtf+optimus", "srtf+doubling", "srtf+drf", "market", "sia"])
def test_a_policy_that_gives_fewer_runs_it(policy):
    assert run([LARGE], policy).summary()["completed"] == 1


def test_an_end_of_the_run_makes_it_legal():
    assert run([LARGE], "fifo", until_s=1000.0).summary()["completed"] == 0


def test_memory_beside_each_gpu_counts_as_well():
    job = Job("fat", 0.0, 8, 100.0, min_gpus=1, memory_gb=8 * 200.0)
    with pytest.raises(
        InputError, match=r"'fat' asks for 200 GB with each of 8 GPUs; .* room for 2 such GPUs"
    ):
        run([job], "fifo")
    assert run([job], "srtf+drf").summary()["completed"] == 1


def test_what_no_sum_shows_is_told_when_the_run_is_stuck():
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
    with pytest.raises(InputError) as caught:
        run([job], "fifo", Cluster("thin", nodes))
    assert "job spread can never run by policy fifo, even alone: needs 2 GPUs; 12 are free" in str(
        caught.value
    )
    assert "ask for less, or take another policy" in str(caught.value)


def test_a_job_that_would_run_alone_has_no_limit_to_blame():
    assert why_never(SMALL, LARGE, parse_policy("srtf+drf"), Rules()) == ""
    assert why_never(SMALL, Job("a", 0.0, 8, 10.0), parse_policy("srtf+smd"), Rules()) == ""
