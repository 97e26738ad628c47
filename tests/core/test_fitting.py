"""Jobs that fit nowhere any more: they wait with a reason, block nobody, and go on when nodes come back."""

from __future__ import annotations

import json

import pytest

from real_cases import Real, on, real
from trainyard.core.events import (
    JobCancelled,
    JobChanged,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobSubmitted,
    NodeDrained,
    NodeFailed,
    NodeJoined,
    NodeLeft,
)
from trainyard.core.instructions import Ended, Ignored
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Demand, Profile, Sync, Tables
from trainyard.state.lifecycle import State

NODE = uniform_cluster(2, 4).nodes[1]
LACKS = ("unschedulable", "needs 8 GPUs; the cluster has 4")


def reason(r, job_id="a"):
    """Why a job waits, but for since when."""
    code, text = r.yard.find(job_id).reason()
    return code, text.partition(" since <")[0]


def test_since_when_a_job_fits_nowhere_stays_the_same():
    r = Real(real("a", 8))
    r.tell(NodeLeft(60.0, "GPU-1"))
    r.tell(NodeDrained(120.0, "GPU-0"))
    assert r.yard.find("a").reason()[1] == f"{LACKS[1]} since <60 s>"


def test_a_job_that_fits_nowhere_any_more_waits_with_a_reason():
    r = Real(real("a", 8), real("b", 4))
    r.tell(NodeLeft(1.0, "GPU-1"))
    assert (r.state(), reason(r), reason(r, "b")) == ("waiting", LACKS, ("", ""))
    assert r.waiting() == ["b"]  # no policy sees it, so that it blocks nobody
    r.tell(NodeJoined(2.0, NODE))
    assert (r.waiting(), reason(r)) == (["a", "b"], ("", ""))


def test_a_node_that_fails_is_expected_back():
    r = Real(real("a", 8))
    r.tell(NodeFailed(1.0, "GPU-1"))
    assert (r.waiting(), reason(r)) == (["a"], ("", ""))


def test_who_loses_its_node_is_lost_first_and_then_fits_nowhere():
    """What ended its run stays the reason of the run; why it waits is told apart."""
    r = Real(real("a", 8))
    r.decide(0.0, a=on(n0=4, n1=4))
    r.tell(NodeLeft(5.0, "GPU-1"))
    assert (r.state(), reason(r)[0], r.waiting()) == ("killing", "node_lost", [])
    r.tell(JobGone(6.0, "a", 1))
    assert (r.state(), reason(r), r.waiting()) == ("waiting", LACKS, [])
    assert r.yard.find("a").trouble.code == "node_lost"
    r.tell(NodeJoined(7.0, NODE))
    assert (r.waiting(), reason(r)[0]) == (["a"], "node_lost")


def test_who_runs_has_its_place():
    r = Real(real("a", 8, min_gpus=2))
    r.decide(0.0, a=on(n0=4))
    r.tell(NodeLeft(1.0, "GPU-1"))
    assert (r.state(), reason(r)) == ("running", ("", ""))


def test_the_longest_wait_ends_it():
    r = Real(real("a", 8, max_wait_s=10.0))
    r.tell(NodeLeft(1.0, "GPU-1"))
    (end,) = [i for i in r.wait(10.0) if isinstance(i, Ended)]
    assert (end.state, r.yard.parked) == (State.FAILED, {})


def test_it_can_be_cancelled_held_and_released():
    r = Real(real("a", 8), real("b", 8))
    r.tell(NodeLeft(1.0, "GPU-1"))
    r.tell(JobHeld(2.0, "a"))
    assert (r.state(), reason(r)) == ("held", ("", ""))
    r.tell(JobReleased(3.0, "a"))
    assert (r.state(), reason(r), r.waiting()) == ("waiting", LACKS, [])
    r.tell(JobCancelled(4.0, "b"))
    assert list(r.yard.parked) == ["a"]


def test_a_job_that_needs_less_may_go_on():
    r = Real(real("a", 8, min_gpus=6, max_gpus=8))
    r.tell(NodeLeft(1.0, "GPU-1"))
    assert r.waiting() == []
    r.tell(JobChanged(2.0, "a", {"min_gpus": 4}))
    assert (r.waiting(), reason(r)) == (["a"], ("", ""))
    r.tell(JobChanged(3.0, "a", {"min_gpus": 5}))
    assert (r.waiting(), reason(r)[0]) == ([], "unschedulable")


def test_a_real_job_that_never_fits_is_accepted_and_waits():
    r = Real(real("a", 9), real("b", 2, cpus=40.0))
    assert reason(r) == ("unschedulable", "needs 9 GPUs; the cluster has 8")
    said = "asks for 20 CPUs with each of 2 GPUs; the nodes have room for 0 such GPUs"
    assert reason(r, "b") == ("unschedulable", said)
    assert r.waiting() == []


def test_who_is_tried_again_is_looked_at():
    r = Real(real("a", 8))
    r.tell(JobCancelled(1.0, "a"))
    r.tell(NodeLeft(2.0, "GPU-1"))
    r.tell(JobRetried(3.0, "a"))
    assert (r.state(), reason(r), r.waiting()) == ("waiting", LACKS, [])


def test_a_gpu_type_whose_nodes_all_left():
    nodes = (Node("v", "V100", 4, 12.0, 250.0), Node("k", "K80", 4, 12.0, 250.0))
    r = Real(real("a", 2, gpu_type="K80"), cluster=Cluster("two", nodes))
    r.tell(NodeLeft(1.0, "k"))
    assert reason(r) == ("unschedulable", "needs K80 GPUs; the cluster has none")
    r.tell(NodeJoined(2.0, nodes[1]))
    assert r.waiting() == ["a"]


def test_an_empty_cluster_keeps_everybody_waiting():
    profile = Profile("p", sync=Sync(kind="ps"), worker=Demand(1.0, 1.0), server=Demand(1.0, 1.0))
    r = Real(real("a", 1), real("b", 1, profile=profile), nodes=1)
    r.tell(NodeLeft(1.0, "GPU-0"))
    assert reason(r) == reason(r, "b") == ("unschedulable", "needs 1 GPUs; the cluster has 0")


def test_a_fork_and_a_state_keep_it():
    r = Real(real("a", 8))
    r.tell(NodeLeft(1.0, "GPU-1"))
    for twin in (fork(r.yard), yard_of(json.loads(json.dumps(state_of(r.yard))), r.yard.decider)):
        lacks = LACKS[0], f"{LACKS[1]} since <1 s>"
        assert (list(twin.parked), twin.find("a").reason()) == (["a"], lacks)
        twin.handle(NodeJoined(2.0, NODE))
        assert list(twin.records) == ["a"]


@pytest.mark.parametrize("terms", [True, False])
def test_a_job_without_any_speed_is_ignored(terms):
    """It would never end, whatever it got: nothing changes, and nothing is raised."""
    still = Profile("still", scaling="weak", tables=Tables(cpu_memory=((1, 10, 0.0), (3, 10, 0.0))))
    job = real("a", 1, profile=still) if terms else Job("a", 0.0, 1, 10.0, profile=still)
    r = Real()
    before = state_of(r.yard)
    (ignored,) = r.tell(JobSubmitted(0.0, job))
    assert isinstance(ignored, Ignored)
    assert "0 samples/s" in ignored.why
    assert state_of(r.yard) == before
