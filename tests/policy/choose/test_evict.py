"""Who makes room for a job of a higher class that finds GPUs enough, but no place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policy_cases import nodes_of, snapshot_of
from trainyard.core.check import check_plan
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.job import Job
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy

TWO = nodes_of(4, 4)
TOGETHER = "srtf+pack(consolidate=require)"


def job(name, gpus, duration_s=1000.0, **more):
    return Job(name, 0.0, gpus, duration_s, **{"checkpoint_s": 1e6, **more})


def decided(policy, cluster, jobs, held, now_s=100.0):
    """What a plan changes, by node; it must keep all rules."""
    snapshot = snapshot_of(cluster, jobs, held, now_s)
    before = snapshot.free.copy()
    plan = parse_policy(policy).decide(snapshot)
    assert (snapshot.free.gpus, snapshot.free.cpus) == (before.gpus, before.cpus)
    check_plan(snapshot, plan.changes)
    return {j: None if a is None else dict(a.workers) for j, a in plan.changes.items()}


SPREAD = {"x": {"n0": 2}, "y": {"n1": 2}}


def test_who_loses_least_makes_room_and_runs_elsewhere():
    jobs = [job("x", 2), job("y", 2, checkpoint_s=0.0), job("z", 4, priority=1)]
    assert decided(TOGETHER, TWO, jobs, SPREAD) == {"z": {"n1": 4}, "y": {"n0": 2}}
    jobs = [job("x", 2, checkpoint_s=0.0), job("y", 2), job("z", 4, priority=1)]
    assert decided(TOGETHER, TWO, jobs, SPREAD) == {"z": {"n0": 4}, "x": {"n1": 2}}


def test_who_finds_no_other_place_waits():
    jobs = [job("x", 2), job("y", 3, checkpoint_s=0.0), job("z", 4, priority=1)]
    assert decided(TOGETHER, TWO, jobs, {"x": {"n0": 2}, "y": {"n1": 3}}) == {"z": {"n1": 4}, "y": None}


def test_who_turns_out_not_to_be_in_the_way_goes_on():
    """`a` loses least and stops first, but its node is of no use: `z` goes where `x` and `y` are."""
    cluster = nodes_of(2, 4)
    jobs = [
        job("a", 2, checkpoint_s=0.0),
        job("x", 2),
        job("y", 1, checkpoint_s=300.0),
        job("z", 4, priority=1),
    ]
    held = {"a": {"n0": 2}, "x": {"n1": 2}, "y": {"n1": 1}}
    changes = decided(TOGETHER, cluster, jobs, held)
    assert changes == {"z": {"n1": 4}, "x": None, "y": None}


def test_the_lowest_class_goes_first():
    jobs = [job("x", 2, checkpoint_s=0.0, priority=1), job("y", 2), job("z", 4, priority=2)]
    assert decided(TOGETHER, TWO, jobs, SPREAD) == {"z": {"n1": 4}, "y": {"n0": 2}}


@pytest.mark.parametrize(
    ("policy", "z"),
    [(TOGETHER, {"priority": 0}), ("fifo+pack(consolidate=require)", {"priority": 1})],
)
def test_nobody_stops_for_an_equal_or_without_preemption(policy, z):
    jobs = [job("x", 2, priority=0), job("y", 2), job("w", 1, sizes=(1,)), job("z", 4, 2000.0, **z)]
    assert decided(policy, TWO, jobs, {**SPREAD, "w": {"n0": 1}}) == {}


def test_who_must_not_be_stopped_stays():
    jobs = [job("x", 2, preemptible=False), job("y", 2, preemptible=False), job("z", 4, priority=1)]
    assert decided(TOGETHER, TWO, jobs, SPREAD) == {}
    jobs[1] = job("y", 2)
    assert decided(TOGETHER, TWO, jobs, SPREAD) == {"z": {"n1": 4}, "y": {"n0": 2}}


def test_nobody_stops_where_that_is_no_help():
    stay = [job("p", 1, preemptible=False), job("q", 1, preemptible=False)]
    jobs = [job("x", 2), job("y", 2), *stay, job("z", 4, priority=1)]
    assert decided(TOGETHER, TWO, jobs, {**SPREAD, "p": {"n0": 1}, "q": {"n1": 1}}) == {}


def test_cpus_in_the_wrong_hands():
    """One GPU of four is taken, but with 10 of 12 CPUs: `z` needs 6 of them."""
    jobs = [job("x", 1, cpus=10.0), job("z", 2, cpus=6.0, priority=1)]
    yard = Yard(nodes_of(4), lambda _: Plan({"x": Allocation((Share("n0", 1, 0, 10.0, 60.0),))}))
    for each in jobs:
        yard.handle(JobSubmitted(0.0, each))
    yard.handle(DecisionDue(0.0))
    changes = parse_policy("srtf").decide(yard.snapshot(50.0)).changes
    assert changes["x"] is None
    assert dict(changes["z"].workers) == {"n0": 2}


def test_a_guarantee_evicts_borrowers():
    cluster = replace(TWO, tenants={"red": Tenant("red", 4)})
    jobs = [job("x", 2), job("y", 2, checkpoint_s=0.0, priority=9), job("z", 4, tenant="red")]
    assert decided(TOGETHER, cluster, jobs, SPREAD) == {"z": {"n0": 4}, "x": {"n1": 2}}


def test_limits_hold():
    """`z` may start only if `y` of the same tenant stops, too, and stays so."""
    cluster = replace(TWO, tenants={"red": Tenant("red", 0, 5)})
    jobs = [job("x", 2, checkpoint_s=0.0), job("y", 2, tenant="red"), job("z", 4, tenant="red", priority=1)]
    changes = decided(TOGETHER, cluster, jobs, SPREAD)
    assert (changes["z"], changes["y"]) == ({"n1": 4}, None)
    assert "x" not in changes
