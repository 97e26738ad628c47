"""A yard once more, forked or written down and read: the same at once and from then on, and its own."""

from __future__ import annotations

import json
from math import inf

import pytest

from conftest import complaint
from profile_cases import SERVED
from real_cases import Real, on, real
from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    GpuFailed,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobStopped,
    JobSubmitted,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeUndrained,
    PolicyChanged,
    ProgressReported,
    ReservationDropped,
    ReservationMade,
)
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.model.rules import Rules
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy

CLUSTER = Cluster(
    "two",
    (
        *(Node(f"GPU-{i}", "GPU", 4, 12.0, 250.0) for i in range(4)),
        Node("old", "K", 2, 6.0, 125.0),
    ),
    {"K": GpuType("K", 0.5, 8.0)},
    {"t": Tenant("t", guaranteed=4, limit=8)},
)


def text_of(yard):
    return json.dumps(state_of(yard), sort_keys=True, allow_nan=False)


def read_again(yard):
    return yard_of(json.loads(json.dumps(state_of(yard), allow_nan=False)), yard.decider, yard.policies)


def everything(indices):
    """A yard in which everything is the matter at once."""
    jobs = [
        real("run", tenant="t", user="u", time_limit_s=500.0),
        real("wide", 8),
        real("stop", 4),
        real("next", 4),
        real("held", hold=True),
        real("after", after={"run": "ok", "held": "any"}),
        real("back", 1, retries=3),
        real("over", 1),
        Job("odd", 0.0, 2, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=3),
        Job("unknown", 0.0, 1, priority=2),
    ]
    r = Real(*jobs, cluster=CLUSTER, indices=indices, policies=parse_policy, start_s=2.0, restart_s=3.0)
    odd = Allocation((Share("GPU-3", 2, 0, 5.0, 100.0),))
    old = Allocation((Share("old", 1, 0, 3.0, 62.5),))
    r.decide(1.0, run=on(n0=4), wide=on(n1=4, n2=4), odd=odd, unknown=old, back=on(n3=1), over=on(n3=1))
    r.tell(ProgressReported(11.0, "odd", 500.0, 40.0, 0.5))
    r.tell(ProgressReported(11.0, "unknown", 3.0))
    r.tell(CheckpointWritten(12.0, "unknown", 3.0))
    r.tell(JobFailed(12.0, "back", "exit", "é"))
    r.tell(JobFailed(12.0, "over", "cannot_start"))
    r.tell(NodeFailed(13.0, "GPU-1"))
    r.tell(JobGone(14.0, "wide", 1, "GPU-2"))
    r.decide(14.0, stop=on(n2=4))
    r.decide(15.0, stop=None, next=on(n2=4))
    r.tell(GpuFailed(16.0, "GPU-3", 3))
    r.tell(NodeDrained(16.0, "old"))
    r.tell(ReservationMade(17.0, Reservation("r", 100.0, inf, ("GPU-0",), "t")))
    r.tell(ReservationMade(17.0, Reservation("s", 10.0, 300.0, ("old",))))
    assert not r.yard.refused
    return r


LATER = [
    JobStopped(20.0, "stop"),
    NodeFenced(21.0, "GPU-1"),
    DecisionDue(22.0),
    JobReleased(23.0, "held"),
    JobCancelled(24.0, "run"),
    JobStopped(25.0, "run"),
    JobRetried(26.0, "over"),
    JobRetried(26.0, "run"),
    DecisionDue(30.0),
    NodeUndrained(31.0, "old"),
    ReservationDropped(32.0, "s"),
    NodeLeft(32.0, "GPU-1"),
    NodeJoined(33.0, Node("GPU-1", "GPU", 6, 18.0, 375.0)),
    JobSubmitted(34.0, real("new", after={"next": "ok"})),
    DecisionDue(35.0),
    JobFinished(36.0, "next"),
    JobHeld(37.0, "odd"),
    DecisionDue(200.0),
    DecisionDue(5000.0),
]


@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize("make", [fork, read_again])
def test_a_twin_is_the_same_and_goes_on_in_the_same_way(make, indices):
    r = everything(indices)
    r.tell(PolicyChanged(18.0, "srtf+tune"))
    twin = make(r.yard)
    validate(twin)
    assert text_of(twin) == text_of(r.yard)
    for event in LATER:
        assert repr(twin.handle(event)) == repr(r.yard.handle(event))
        validate(twin)
        assert text_of(twin) == text_of(r.yard)


@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize("make", [fork, read_again])
def test_what_a_twin_does_is_nothing_to_the_original(make, indices):
    r = everything(indices)
    before, told = text_of(r.yard), list(r.yard.story)
    twin = make(r.yard)
    for event in LATER:
        twin.handle(event)
    assert text_of(r.yard) == before
    assert list(r.yard.story) == told
    validate(r.yard)


def test_what_the_original_does_is_nothing_to_a_fork():
    r = everything(True)
    twin = fork(r.yard)
    before = text_of(twin)
    for event in LATER:
        r.yard.handle(event)
    assert text_of(twin) == before
    validate(twin)


def test_another_policy_may_decide_about_a_fork():
    jobs = [Job("long", 0.0, 8, 1000.0), Job("short", 0.0, 8, 10.0)]
    r = Real(*jobs, policies=parse_policy)
    r.tell(PolicyChanged(0.0, "fifo"))
    (start,) = fork(r.yard, parse_policy("srtf").decide).handle(DecisionDue(1.0))
    assert start.job_id == "short"
    (start,) = r.tell(DecisionDue(1.0))
    assert start.job_id == "long"


@pytest.mark.parametrize("make", [fork, read_again])
def test_usage_of_tenants_goes_on(make):
    r = everything(False)
    twin = make(r.yard)
    for name in (("t",), ("t", "u")):
        assert twin.usage.gpu_s(name, 99.0) == r.yard.usage.gpu_s(name, 99.0) > 0
    twin.handle(JobFinished(50.0, "run"))
    assert twin.usage.gpus(("t",)) == 0
    assert r.yard.usage.gpus(("t",)) == 4


def test_rules_and_an_empty_yard_are_read_again():
    yard = Yard(CLUSTER, parse_policy("fifo").decide, Rules(start_s=1.5, restart_s=None), remember=7)
    twin = read_again(yard)
    assert (twin.rules, twin.cluster, twin.over.most) == (yard.rules, CLUSTER, 7)
    assert text_of(twin) == text_of(yard)


def test_a_state_of_another_version_is_refused():
    state = state_of(Real().yard) | {"v": 9}
    assert complaint(yard_of, state, lambda _: None) == ("the state is of version 9; this is version 1")


@pytest.mark.parametrize("make", [fork, read_again])
def test_a_twin_knows_who_has_another_size_than_requested(make):
    r = Real(real("a", min_gpus=2, max_gpus=8), real("b"))
    r.decide(0.0, a=on(n0=2), b=on(n1=4))
    assert make(r.yard).table.resized == r.yard.table.resized == 1
    r.decide(1.0, a=None)
    assert make(r.yard).table.resized == r.yard.table.resized == 0


@pytest.mark.parametrize("make", [fork, read_again])
def test_a_twin_remembers_how_long_past_jobs_took(make):
    r = Real(Job("past", 0.0, 4, 100.0), real("a", duration_s=None))
    r.decide(0.0, past=on(n0=4))
    r.tell(JobFinished(100.0, "past"))
    twin = make(r.yard)
    kept = r.yard.lengths.history.record()
    assert twin.lengths.history.record() == kept != []
    twin.lengths.history.add(Job("more", 0.0, 1), 5.0)
    assert r.yard.lengths.history.record() == kept
