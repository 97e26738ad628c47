"""Tuning where some nodes are closed: nobody is moved there, and what was placed still fits."""

from __future__ import annotations

from real_cases import Real, on
from trainyard.core.events import DecisionDue, NodeDrained, PolicyChanged
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Input, Profile
from trainyard.policy.grammar import parse_policy


def fed(name, cpus, gpus=2):
    """A job that is as fast as it can be with so many CPUs for each GPU."""
    profile = Profile(batch=1, compute=Compute(0.0, {"GPU": 1.0}), input=Input(cpu_s_per_sample=cpus))
    return Job(name, 0.0, gpus, samples=1e6, profile=profile)


def test_a_seat_on_a_closed_node_is_not_exchanged_and_the_plan_can_be_carried_out():
    r = Real(fed("modest", 1.0), fed("hungry", 4.0), policies=parse_policy)
    r.decide(0.0, modest=on(n1=2), hungry=on(n0=2))
    r.tell(PolicyChanged(0.0, "srtf+tune"))
    (retune,) = [i for i in r.tell(DecisionDue(1.0)) if i.job_id == "hungry"]
    assert retune.allocation.shares[0].cpus == 8.0
    r.tell(NodeDrained(2.0, "GPU-1"))
    r.submit(fed("new", 4.0), 3.0)
    out = r.tell(DecisionDue(3.0))
    assert r.yard.refused == 0
    held = {job_id: allocation.shares for job_id, allocation in r.yard.target.items()}
    assert {job_id: [share.node for share in shares] for job_id, shares in held.items()} == {
        "modest": ["GPU-1"],
        "hungry": ["GPU-0"],
        "new": ["GPU-0"],
    }
    assert held["hungry"][0].cpus + held["new"][0].cpus == 12.0
    assert len(out) == 2  # one starts, and the other makes room
