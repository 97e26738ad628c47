"""Nodes come, go, fail, are drained and reserved; single GPUs fail."""

from __future__ import annotations

from math import inf

import pytest

from real_cases import Real, on, real
from trainyard.core.events import (
    DecisionDue,
    GpuFailed,
    GpuRepaired,
    JobFinished,
    JobGone,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    PolicyChanged,
    ReservationDropped,
    ReservationMade,
)
from trainyard.core.instructions import Fence, Kill, PlanRefused, Start, Stop
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.policy.grammar import parse_policy


def reserve(now, name="r", from_s=0.0, to_s=inf, **more):
    return ReservationMade(now, Reservation(name, from_s, to_s, **more))


def books(r):
    return r.yard.up_gpus, r.yard.free.gpus, r.yard.view.up.tolist()


# -- drains --------------------------------------------------------------------------------------------------


def test_on_a_drained_node_jobs_go_on_and_none_begin():
    r = Real(real("a", 2), real("b", 2))
    r.decide(0.0, a=on(n0=2))
    assert r.tell(NodeDrained(5.0, "GPU-0")) == []
    assert (r.state("a"), books(r)) == ("running", (6, [0, 4], [True, True]))
    (refused,) = r.decide(6.0, b=on(n0=2))
    assert refused == PlanRefused("job b may not begin to use node GPU-0")
    (start,) = r.decide(7.0, b=on(n1=2))
    assert start.job_id == "b"
    r.tell(JobFinished(100.0, "a"))
    assert books(r) == (4, [0, 2], [False, True])
    r.tell(NodeUndrained(101.0, "GPU-0"))
    assert books(r) == (8, [4, 2], [True, True])


def test_a_job_on_a_drained_node_may_shrink_but_not_grow():
    r = Real(real("a", 2, min_gpus=1, max_gpus=4))
    r.decide(0.0, a=on(n0=2))
    r.tell(NodeDrained(5.0, "GPU-0"))
    (refused,) = r.decide(6.0, a=on(n0=3))
    assert refused == PlanRefused("job a may not begin to use node GPU-0")
    assert r.decide(7.0, a=on(n0=1)) == [Stop("a")]
    (start,) = r.stopped(8.0, "a")
    assert start.allocation == on(n0=1)


def test_who_was_going_to_start_on_a_drained_node_waits():
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    r.decide(5.0, a=None, b=on(n0=4))
    r.tell(NodeDrained(6.0, "GPU-0"))
    assert r.waiting() == ["a", "b"]
    assert r.stopped(7.0, "a") == []


@pytest.mark.parametrize("after", [on(n0=4), on(n1=2), on(n0=1, n1=1)], ids=repr)
def test_who_was_going_to_move_to_a_drained_node_waits(after):
    r = Real(real("a", 2, min_gpus=2, max_gpus=4))
    r.decide(0.0, a=on(n0=2))
    assert r.decide(5.0, a=after) == [Stop("a")]
    for node in ("GPU-0", "GPU-1"):
        r.tell(NodeDrained(6.0, node))
    assert (r.yard.pending, r.waiting()) == ({}, ["a"])
    assert r.stopped(7.0, "a") == []
    assert (r.state(), books(r)) == ("waiting", (0, [0, 0], [False, False]))


def test_other_cpus_may_still_come_on_a_drained_node():
    r = Real(real("a", 2), real("b", 2))
    r.decide(0.0, a=on(n0=2), b=on(n0=2))
    more = Allocation((Share("GPU-0", 2, 0, 9.0, 125.0),))
    assert r.decide(5.0, b=None, a=more) == [Stop("b")]
    r.tell(NodeDrained(6.0, "GPU-0"))
    (retune,) = r.stopped(7.0, "b")
    assert retune.allocation == more


def test_a_drained_node_that_fails_and_comes_back_is_still_drained():
    r = Real(real("a"))
    r.tell(NodeDrained(1.0, "GPU-0"))
    r.tell(NodeFailed(2.0, "GPU-0"))
    r.tell(NodeRepaired(3.0, "GPU-0"))
    assert books(r) == (4, [0, 4], [False, True])
    r.tell(NodeUndrained(4.0, "GPU-0"))
    assert books(r) == (8, [4, 4], [True, True])


def test_policies_use_what_is_left():
    r = Real(real("a"), real("b"), policies=parse_policy)
    r.tell(PolicyChanged(0.0, "fifo"))
    r.tell(NodeDrained(0.0, "GPU-0"))
    (start,) = r.tell(DecisionDue(0.0))
    assert (start.job_id, start.allocation.workers) == ("a", (("GPU-1", 4),))
    r.tell(NodeUndrained(1.0, "GPU-0"))
    (start,) = r.tell(DecisionDue(1.0))
    assert (start.job_id, start.allocation.workers) == ("b", (("GPU-0", 4),))


# -- failures ------------------------------------------------------------------------------------------------


def test_nothing_is_given_away_before_a_failed_node_is_fenced():
    """[V] house 7."""
    r = Real(real("wide", 8), real("b"), nodes=3)
    r.decide(0.0, wide=on(n0=4, n1=4))
    assert r.tell(NodeFailed(5.0, "GPU-0")) == [Kill("wide"), Fence("GPU-0")]
    assert books(r) == (8, [0, 4, 4], [False, True, True])
    assert r.decide(6.0, b=on(n1=4)) == []
    (refused,) = r.decide(7.0, b=on(n0=4))
    assert refused.why == "job b may not begin to use node GPU-0"
    assert r.tell(NodeFenced(8.0, "GPU-0")) == []  # GPU-1 is not fenced
    (start,) = r.tell(JobGone(9.0, "wide", 1, "GPU-1"))
    assert start.job_id == "b"


def test_an_empty_node_that_fails_needs_no_fence():
    r = Real(real("a"))
    assert r.tell(NodeFailed(5.0, "GPU-0")) == []
    assert r.tell(NodeRepaired(6.0, "GPU-0")) == []
    assert books(r) == (8, [4, 4], [True, True])


def test_a_job_that_was_going_to_move_to_a_failed_node_waits():
    r = Real(real("a", 2))
    r.decide(0.0, a=on(n0=2))
    assert r.decide(5.0, a=on(n1=2)) == [Stop("a")]
    assert r.tell(NodeFailed(6.0, "GPU-1")) == []
    assert r.stopped(7.0, "a") == []
    assert r.waiting() == ["a"]


# -- joining and leaving -------------------------------------------------------------------------------------


def test_a_node_of_a_new_type_joins():
    r = Real(real("a"), nodes=1)
    assert r.why(NodeLeft(0.0, "big")) == "there is no node big"
    r.tell(NodeJoined(1.0, Node("big", "H100", 8, 32.0, 800.0)))
    assert books(r) == (12, [4, 8], [True, True])
    assert (r.yard.free.cpus, r.yard.free.memory_gb, r.yard.all_gpus) == ([12.0, 32.0], [250.0, 800.0], 12)
    assert (r.yard.nodes.types, r.yard.view.nodes.ids) == (["GPU", "H100"], ["GPU-0", "big"])
    r.submit(Job("h", 0.0, 8, 100.0, gpu_type="H100"), 2.0)
    eight = Allocation((Share("big", 8, 0, 32.0, 800.0),))
    (start,) = r.decide(2.0, h=eight)
    assert (start.job_id, start.samples_per_s) == ("h", 8.0)


def test_a_node_leaves_and_comes_back_as_it_was():
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4), b=on(n1=4))
    assert r.tell(NodeLeft(5.0, "GPU-0")) == [Kill("a"), Fence("GPU-0")]
    assert (books(r), r.yard.all_gpus) == ((4, [0, 0], [False, True]), 4)
    assert r.why(NodeDrained(6.0, "GPU-0")) == "there is no node GPU-0"
    assert r.why(NodeRepaired(6.0, "GPU-0")) == "there is no node GPU-0"
    r.tell(NodeJoined(7.0, r.yard.cluster.nodes[0]))  # whoever joins anew is empty
    assert (r.state("a"), r.yard.leaving) == ("waiting", {})
    assert (books(r), r.yard.all_gpus, r.yard.nodes.ids) == (
        (8, [4, 0], [True, True]),
        8,
        ["GPU-0", "GPU-1"],
    )


def test_a_node_that_left_is_fenced():
    r = Real(real("a"))
    r.decide(0.0, a=on(n0=4))
    r.tell(NodeLeft(5.0, "GPU-0"))
    r.tell(NodeFenced(6.0, "GPU-0"))
    assert (r.state(), r.yard.leaving) == ("waiting", {})


@pytest.mark.parametrize("indices", [False, True])
def test_a_node_comes_back_with_other_gpus(indices):
    r = Real(real("a"), real("b", 6), indices=indices)
    r.decide(0.0, a=on(n0=4))
    r.tell(GpuFailed(4.0, "GPU-0", 3))
    r.tell(JobGone(4.0, "a"))
    r.tell(NodeLeft(5.0, "GPU-0"))
    r.tell(NodeJoined(7.0, Node("GPU-0", "GPU", 6, 18.0, 375.0)))
    assert r.yard.nodes.ids == ["GPU-0~2", "GPU-1", "GPU-0"]
    assert (books(r), r.yard.all_gpus) == ((10, [0, 4, 6], [False, True, True]), 10)
    assert r.yard.conditions.broken == {"GPU-0~2": {3}}
    (start,) = r.decide(8.0, b=on(n0=6))
    assert start.gpus == ({"GPU-0": (0, 1, 2, 3, 4, 5)} if indices else {})
    assert r.tell(NodeFailed(9.0, "GPU-0")) == [Kill("b"), Fence("GPU-0")]


def test_a_drained_node_that_leaves_and_comes_back_is_open():
    r = Real(real("a"))
    r.tell(NodeDrained(1.0, "GPU-0"))
    r.tell(NodeLeft(2.0, "GPU-0"))
    r.tell(NodeJoined(3.0, r.yard.cluster.nodes[0]))
    assert books(r) == (8, [4, 4], [True, True])


def test_the_last_node_may_leave():
    r = Real(real("a"), nodes=1)
    r.tell(NodeLeft(1.0, "GPU-0"))
    assert books(r) == (0, [0], [False])
    r.tell(NodeJoined(3.0, r.yard.cluster.nodes[0]))
    assert [type(i) for i in r.decide(4.0, a=on(n0=4))] == [Start]


# -- single GPUs ---------------------------------------------------------------------------------------------


def test_the_holder_of_a_gpu_that_fails_is_started_again_without_it():
    r = Real(real("a", 2), real("b", 1), nodes=1, indices=True)
    a, b = r.decide(0.0, a=on(n0=2), b=on(n0=1))
    assert (a.gpus, b.gpus) == ({"GPU-0": (0, 1)}, {"GPU-0": (2,)})
    assert r.tell(GpuFailed(25.0, "GPU-0", 1)) == [Kill("a")]
    assert r.reason("a") == ("node_lost", "GPU 1 of node GPU-0 failed")
    assert (r.state("b"), books(r)) == ("running", (3, [2], [True]))
    assert r.decide(26.0, a=on(n0=2)) == []
    (start,) = r.tell(JobGone(27.0, "a", 1, "GPU-0"))
    assert (start.gpus, start.finish_s) == ({"GPU-0": (0, 3)}, 27.0 + 80.0)
    r.tell(GpuRepaired(28.0, "GPU-0", 1))
    assert (books(r), r.yard.seats.free.free("GPU-0")) == ((4, [1], [True]), (1,))


def test_a_free_gpu_fails_and_nobody_is_harmed():
    r = Real(real("a", 2), nodes=1, indices=True)
    r.decide(0.0, a=on(n0=2))
    assert r.tell(GpuFailed(5.0, "GPU-0", 3)) == []
    assert (r.state(), books(r), r.yard.seats.free.free("GPU-0")) == ("running", (3, [1], [True]), (2,))


@pytest.mark.parametrize("indices", [False, True])
def test_a_gpu_that_was_promised_fails(indices):
    r = Real(real("a"), real("b"), nodes=1, indices=indices)
    r.decide(0.0, a=on(n0=4))
    r.decide(5.0, a=None, b=on(n0=4))
    r.tell(GpuFailed(6.0, "GPU-0", 0))
    assert (r.waiting(), books(r)) == (["a", "b"], (3, [3], [True]))
    if indices:  # it is known who held it
        r.tell(JobGone(7.0, "a"))
    else:
        assert r.stopped(7.0, "a") == []
    assert (r.state("a"), r.yard.leaving) == ("waiting", {})


def test_without_indices_the_last_to_come_makes_room_on_a_full_node():
    r = Real(real("a", 2), real("b", 2), nodes=1)
    r.decide(0.0, a=on(n0=2))
    r.decide(1.0, b=on(n0=2))
    assert r.tell(GpuFailed(25.0, "GPU-0", 0)) == [Kill("b")]
    assert books(r) == (3, [1], [True])


def test_without_indices_a_free_gpu_is_thought_to_be_the_one():
    r = Real(real("a", 2), nodes=1)
    r.decide(0.0, a=on(n0=2))
    assert r.tell(GpuFailed(25.0, "GPU-0", 0)) == []
    assert (r.state(), books(r)) == ("running", (3, [1], [True]))


def test_all_gpus_of_a_node_fail_one_by_one():
    r = Real(real("a", 4), nodes=1)
    for index in range(4):
        r.tell(GpuFailed(1.0, "GPU-0", index))
    assert books(r) == (0, [0], [False])
    (refused,) = r.decide(2.0, a=on(n0=4))
    assert refused.why == "node GPU-0 is over-allocated by 4 GPUs"
    for index in range(4):
        r.tell(GpuRepaired(3.0, "GPU-0", index))
    assert [type(i) for i in r.decide(4.0, a=on(n0=4))] == [Start]


def test_a_gpu_fails_on_a_node_that_is_down():
    r = Real(real("a"))
    r.tell(NodeFailed(1.0, "GPU-0"))
    r.tell(GpuFailed(2.0, "GPU-0", 2))
    assert books(r) == (4, [0, 4], [False, True])
    r.tell(NodeRepaired(3.0, "GPU-0"))
    assert books(r) == (7, [3, 4], [True, True])


# -- reservations --------------------------------------------------------------------------------------------


def test_maintenance_stops_everybody_and_opens_again_by_itself():
    r = Real(real("a", tenant="t"), real("b"))
    r.decide(0.0, a=on(n0=4))
    assert r.tell(reserve(5.0, from_s=10.0, to_s=50.0, nodes=("GPU-0",))) == []
    assert (r.state("a"), r.wake_s) == ("running", 10.0)
    assert r.wait(10.0) == [Stop("a")]
    assert r.yard.story.of("a")[-1].cause == "its node is reserved (r)"
    r.stopped(11.0, "a")
    assert (books(r), r.wake_s) == ((4, [0, 4], [False, True]), 50.0)
    (refused,) = r.decide(12.0, b=on(n0=4))
    assert refused.why == "job b may not begin to use node GPU-0"
    r.wait(50.0)
    assert (books(r), r.yard.conditions.reservations) == ((8, [4, 4], [True, True]), {})
    assert [type(i) for i in r.decide(50.0, b=on(n0=4))] == [Start]


def test_only_a_tenants_jobs_stay_on_its_nodes():
    r = Real(real("mine", 2, tenant="t"), real("other", 2, tenant="u"), real("more", 2, tenant="t"))
    r.decide(0.0, mine=on(n0=2), other=on(n0=2))
    assert r.tell(reserve(5.0, to_s=50.0, nodes=("GPU-0",), tenant="t")) == [Stop("other")]
    r.stopped(6.0, "other")
    assert (r.state("mine"), books(r)) == ("running", (8, [2, 4], [True, True]))
    (refused,) = r.decide(7.0, other=on(n0=2))
    assert refused.why == "job other may not begin to use node GPU-0"
    assert [i.job_id for i in r.decide(8.0, more=on(n0=2))] == ["more"]
    assert [i.job_id for i in r.decide(9.0, other=on(n1=2))] == ["other"]


def test_before_it_begins_only_jobs_that_cannot_stop_or_end_are_kept_away():
    r = Real(
        real("stops"),
        real("short", preemptible=False, time_limit_s=20.0),
        real("long", preemptible=False, time_limit_s=200.0),
        real("endless", preemptible=False),
        real("mine", preemptible=False, tenant="t"),
        nodes=5,
    )
    nodes = tuple(f"GPU-{i}" for i in range(5))
    r.tell(reserve(0.0, from_s=100.0, to_s=200.0, nodes=nodes, tenant="t"))
    starts = r.decide(1.0, stops=on(n0=4), short=on(n1=4), mine=on(n2=4))
    assert [i.job_id for i in starts] == ["stops", "short", "mine"]
    for name in ("long", "endless"):
        (refused,) = r.decide(2.0, **{name: on(n3=4)})
        assert refused.why == f"job {name} may not begin to use node GPU-3"


def test_who_was_going_to_start_makes_way():
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    r.decide(1.0, a=None, b=on(n0=4))
    r.tell(reserve(2.0, to_s=9.0, nodes=("GPU-0",)))
    assert r.stopped(3.0, "a") == []
    assert r.waiting() == ["a", "b"]


def test_gpus_are_reserved_as_whole_nodes():
    r = Real(nodes=3)
    r.tell(reserve(0.0, "x", gpus=5, to_s=50.0))
    assert r.yard.conditions.reservations["x"].nodes == ("GPU-0", "GPU-1")
    assert books(r) == (4, [0, 0, 4], [False, False, True])
    taken = reserve(1.0, "y", nodes=("GPU-1",), to_s=9.0)
    assert r.why(taken) == "reservation y: node GPU-1 is reserved already at that time"
    r.tell(reserve(1.0, "z", nodes=("GPU-1",), from_s=50.0, to_s=60.0))  # one after the other
    r.tell(ReservationDropped(2.0, "x"))
    assert books(r) == (12, [4, 4, 4], [True, True, True])


def test_a_node_that_left_is_not_reserved():
    r = Real(nodes=2)
    r.tell(NodeLeft(0.0, "GPU-0"))
    r.tell(reserve(1.0, gpus=2, to_s=9.0))
    assert r.yard.conditions.reservations["r"].nodes == ("GPU-1",)


def test_a_reservation_without_end():
    r = Real(real("a"))
    r.tell(reserve(0.0, nodes=("GPU-0",)))
    r.wait(1e9)
    assert (books(r), r.wake_s) == ((4, [0, 4], [False, True]), inf)
    r.look()  # it can be written down


def test_a_drained_node_stays_closed_when_its_reservation_ends():
    r = Real(real("a"))
    r.tell(NodeDrained(0.0, "GPU-0"))
    r.tell(reserve(0.0, nodes=("GPU-0",), to_s=9.0))
    r.wait(9.0)
    assert books(r) == (4, [0, 4], [False, True])
