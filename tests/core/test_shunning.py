"""A job that could not be started is tried on other nodes first."""

from __future__ import annotations

import json

import pytest

from real_cases import real
from trainyard.core.events import (
    DecisionDue,
    JobFailed,
    JobFinished,
    JobHeld,
    JobReleased,
    JobStarted,
    JobSubmitted,
)
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.cluster import uniform_cluster
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy

POLICIES = ["fifo", "easy", "srtf", "las", "srtf+drf", "srtf+spread", "srtf+tune"]


def begun(policy, *jobs, nodes=2):
    """A yard in which these jobs were submitted and the policy decided."""
    yard = Yard(uniform_cluster(nodes, 4), parse_policy(policy).decide, Rules(back_off_s=10.0), remember=9)
    for job in jobs:
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    return yard


def nodes_of(yard, job_id="a"):
    return [share.node for share in yard.find(job_id).occupies.shares]


def fail_start(yard, at_s, job_id="a"):
    """Let the start fail, and the policy decide when the back-off is over; return where it is tried next."""
    yard.handle(JobFailed(at_s, job_id, "start", "no such image"))
    validate(yard)
    yard.handle(DecisionDue(at_s + 100.0))
    validate(yard)
    return nodes_of(yard, job_id)


@pytest.mark.parametrize("policy", POLICIES)
def test_other_nodes_come_first(policy):
    yard = begun(policy, real("a", 2, retries=3), nodes=3)
    first = nodes_of(yard)
    second = fail_start(yard, 1.0)
    assert len({*first, *second}) == len(first) + len(second)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_node_is_better_than_none(policy):
    yard = begun(policy, real("a", 2), nodes=1)
    assert fail_start(yard, 1.0) == ["GPU-0"]


def test_both_nodes_failed_then_any_will_do():
    yard = begun("fifo", real("a", 2))
    assert (nodes_of(yard), fail_start(yard, 1.0)) == (["GPU-0"], ["GPU-1"])
    assert yard.find("a").trouble.shuns == ("GPU-0",)
    yard.handle(JobFailed(200.0, "a", "exit", "it ran", attempt=2))
    assert yard.find("a") is None  # no retries


def test_a_start_that_succeeds_ends_it():
    yard = begun("fifo", real("a", 2, retries=5), real("b", 1))
    assert fail_start(yard, 1.0) == ["GPU-1"]
    yard.handle(JobStarted(102.0, "a", attempt=2))
    assert yard.find("a").trouble.shuns == ()
    yard.handle(DecisionDue(103.0))
    assert yard.view.shuns is None


def test_who_is_over_shuns_nothing():
    yard = begun("fifo", real("a", 2))
    fail_start(yard, 1.0)
    yard.handle(JobFinished(150.0, "a"))
    yard.handle(DecisionDue(151.0))
    assert yard.view.shuns is None


def test_others_may_start_there():
    yard = begun("fifo", real("a", 2), nodes=1)
    yard.handle(JobFailed(1.0, "a", "start"))
    yard.handle(JobSubmitted(2.0, real("b", 1)))
    yard.handle(DecisionDue(2.0))
    assert nodes_of(yard, "b") == ["GPU-0"]


def test_a_fork_and_a_state_keep_it():
    yard = begun("fifo", real("a", 2))
    yard.handle(JobFailed(1.0, "a", "start"))
    state = json.loads(json.dumps(state_of(yard)))
    for twin in (fork(yard), yard_of(state, parse_policy("fifo").decide)):
        assert twin.view.shuns == {"a": 1}
        twin.handle(DecisionDue(100.0))
        assert nodes_of(twin) == ["GPU-1"]
    assert json.loads(json.dumps(state_of(yard_of(state, yard.decider)))) == state


def test_a_release_forgives():
    yard = begun("fifo", real("a", 2))
    yard.handle(JobFailed(1.0, "a", "start"))
    yard.handle(JobHeld(2.0, "a"))
    yard.handle(JobReleased(3.0, "a"))
    yard.handle(DecisionDue(4.0))
    assert nodes_of(yard) == ["GPU-0"]
