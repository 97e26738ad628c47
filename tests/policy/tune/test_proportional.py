"""What the proportional stage asks the place stage for."""

from __future__ import annotations

from dataclasses import replace

from policy_cases import nodes_of, snapshot_of
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.policy.tune.proportional import Proportional, proportional_request

RING = Profile(batch=64, compute=Compute(0.01, {"GPU": 0.001}), sync=Sync("ring", gradient_mb=50.0))
SERVED = replace(RING, sync=Sync("ps", gradient_mb=50.0))
APART = replace(SERVED, worker=Demand(2.0, 10.0), server=Demand(1.0, 5.0))


def job(**more):
    return Job("a", 0.0, 2, duration_s=10.0, **more)


def test_a_plain_job_takes_its_nodes_share():
    for plain in (job(), job(profile=RING)):
        assert proportional_request(plain, 3, 1) == Request(plain, 3, 1)


def test_numbers_of_its_own_are_for_each_gpu_it_asked_for():
    """Eight CPUs with two GPUs are four with each, at any size."""
    asks = job(cpus=8.0)
    assert proportional_request(asks, 3, -1) == Request(asks, 3, -1, 4.0, None)
    asks = job(memory_gb=50.0, profile=RING)
    assert proportional_request(asks, 1, -1) == Request(asks, 1, -1, None, 25.0)


def test_a_job_with_servers_asks_for_one_for_each_worker():
    served = job(profile=SERVED)
    assert proportional_request(served, 3, -1) == Request(served, 3, -1, None, None, 3, None)


def test_servers_with_demands_hold_their_own():
    apart = job(profile=APART)
    assert proportional_request(apart, 2, 0) == Request(apart, 2, 0, 2.0, 10.0, 2, Demand(1.0, 5.0))
    own = job(profile=APART, cpus=10.0)
    assert proportional_request(own, 2, 0).cpus_per_gpu == 5.0
    assert proportional_request(own, 2, 0).memory_per_gpu == 10.0


def test_the_stage_asks_just_that_and_changes_nothing():
    stage, asks = Proportional(), job(cpus=8.0)
    snapshot = snapshot_of(nodes_of(4), [asks])
    assert stage.request(snapshot, asks, 2, -1) == proportional_request(asks, 2, -1)
    assert stage.ground(snapshot) is snapshot
    draft = Draft(snapshot)
    stage.improve(snapshot, draft)
    assert draft.close() == {}
    assert stage.by_gpus
