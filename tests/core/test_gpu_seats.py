"""Which GPUs a job holds: the core chooses, or the engine says what it chose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_cases import Real, on, real
from trainyard.core.events import GpuFailed, JobCancelled, JobFinished, JobGone, JobStarted
from trainyard.core.real.seats import Seats
from trainyard.model.cluster import NodeTable, uniform_cluster


def seats():
    return Seats(NodeTable(uniform_cluster(2, 4)))


def test_the_lowest_free_ones_go_first_and_come_back():
    here = seats()
    assert here.take("a", on(n0=2, n1=1)) == {"GPU-0": (0, 1), "GPU-1": (0,)}
    assert here.take("b", on(n0=1)) == {"GPU-0": (2,)}
    assert [here.holder("GPU-0", i) for i in range(4)] == ["a", "a", "b", None]
    here.give_back_on("a", "GPU-0")
    assert (here.of["a"], here.free.free("GPU-0")) == ({"GPU-1": (0,)}, (0, 1, 3))
    here.give_back("a")
    here.give_back("a")  # nothing is left to give back
    assert (here.of, here.free.free("GPU-1")) == ({"b": {"GPU-0": (2,)}}, (0, 1, 2, 3))


def test_the_engine_chooses_others():
    here = seats()
    here.take("a", on(n0=2))
    here.take("b", on(n0=1))
    assert here.correct("a", {"GPU-0": (3, 0)})
    assert (here.of["a"], here.free.free("GPU-0")) == ({"GPU-0": (3, 0)}, (1,))
    assert here.holder("GPU-0", 3) == "a"


@pytest.mark.parametrize(
    "chosen",
    [
        {"GPU-0": (0, 2)},  # `b` has 2
        {"GPU-0": (0, 4)},
        {"GPU-0": (0, -1)},
        {"GPU-0": (3, 3)},
        {"GPU-0": (3,)},
        {"GPU-0": (0, 1, 3)},
        {"GPU-1": (0, 1)},
        {"GPU-0": (0, 1), "GPU-1": (0,)},
        {"n9": (0, 1)},
    ],
    ids=str,
)
def test_what_the_engine_cannot_have_chosen_changes_nothing(chosen):
    here = seats()
    here.take("a", on(n0=2))
    here.take("b", on(n0=1))
    assert not here.correct("a", chosen)
    assert (here.of, here.free.free("GPU-0")) == ({"a": {"GPU-0": (0, 1)}, "b": {"GPU-0": (2,)}}, (3,))
    here.give_back("a")
    assert here.free.free("GPU-0") == (0, 1, 3)


def test_a_copy_shares_nothing():
    here = seats()
    here.take("a", on(n0=2))
    twin = here.copy()
    twin.give_back("a")
    twin.free.break_("GPU-1", 0)
    assert (here.of, here.free.free("GPU-0")) == ({"a": {"GPU-0": (0, 1)}}, (2, 3))
    assert here.free.free("GPU-1") == (0, 1, 2, 3)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4)), max_size=20))
def test_no_gpu_has_two_holders(steps):
    here = seats()
    for job_id, gpus in steps:
        if job_id in here.of:
            here.give_back(job_id)
        elif len(here.free.free("GPU-0")) >= gpus:
            here.take(job_id, on(n0=gpus))
        held = [i for taken in here.of.values() for i in taken["GPU-0"]]
        assert sorted((*held, *here.free.free("GPU-0"))) == [0, 1, 2, 3]


# -- in a yard ---------------------------------------------------------------------------------------------


def test_a_start_is_confirmed_with_the_engines_own_choice():
    r = Real(real("a", 2), real("b", 1), indices=True)
    r.decide(0.0, a=on(n0=2), b=on(n0=1))
    assert r.tell(JobStarted(1.0, "a", 1, {"GPU-0": (1, 3)})) == []
    assert r.yard.seats.of["a"] == {"GPU-0": (1, 3)}
    taken = JobStarted(2.0, "b", 1, {"GPU-0": (3,)})
    assert r.why(taken) == "these are not its GPUs: others hold them, or they are not as many"
    r.tell(JobFinished(3.0, "a"))
    assert r.yard.seats.free.free("GPU-0") == (0, 1, 3)


def test_a_gpu_that_failed_cannot_be_chosen():
    r = Real(real("a", 2), indices=True)
    r.decide(0.0, a=on(n0=2))
    r.tell(GpuFailed(1.0, "GPU-0", 3))
    assert r.why(JobStarted(2.0, "a", 1, {"GPU-0": (0, 3)})).startswith("these are not its GPUs")


def test_gpus_come_back_node_by_node_and_with_the_last_of_them():
    r = Real(real("wide", 8), real("b", 1), indices=True)
    r.decide(0.0, wide=on(n0=4, n1=4))
    r.tell(JobCancelled(1.0, "wide", at_once=True))
    r.tell(JobGone(2.0, "wide", node="GPU-1"))
    assert r.yard.seats.of == {"wide": {"GPU-0": (0, 1, 2, 3)}}
    (start,) = r.decide(3.0, b=on(n1=1))
    assert start.gpus == {"GPU-1": (0,)}
    r.tell(JobGone(4.0, "wide", node="GPU-0"))
    assert r.yard.seats.of == {"b": {"GPU-1": (0,)}}


def test_a_job_that_stops_keeps_its_gpus_until_it_is_gone():
    r = Real(real("a", 2), indices=True)
    r.decide(0.0, a=on(n0=2))
    r.tell(JobStarted(1.0, "a", 1, {"GPU-0": (2, 3)}))
    r.decide(2.0, a=None)
    assert r.yard.seats.of == {"a": {"GPU-0": (2, 3)}}
    r.stopped(3.0, "a")
    assert r.yard.seats.of == {}
