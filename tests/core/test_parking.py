"""Jobs that no policy sees: held ones, and those that come after others."""

from __future__ import annotations

import pytest

from real_cases import Real, on, real
from trainyard.core.events import (
    JobCancelled,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
)
from trainyard.core.instructions import Kill, Stop
from trainyard.core.real.parking import met
from trainyard.state.lifecycle import State

S = State
ENDS = {
    "done": [JobFinished(5.0, "a")],
    "failed": [JobFailed(5.0, "a", "exit")],
    "cancelled": [JobCancelled(5.0, "a", at_once=True), JobGone(5.0, "a")],
}


def outcome(when, state):
    fits = {"ok": state == "done", "failed": state != "done", "any": True}[when]
    return "waiting" if fits else "cancelled"


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("when", ["ok", "failed", "any"])
def test_a_job_comes_after_another(when, state):
    assert met(when, S(state)) == (outcome(when, state) == "waiting")
    r = Real(real("a"), real("b", after={"a": when}))
    assert (r.state("b"), r.waiting(), list(r.yard.parked)) == ("waiting", ["a"], ["b"])
    r.decide(0.0, a=on(n0=4))
    for event in ENDS[state]:
        r.tell(event)
    assert r.state("b") == outcome(when, state)
    assert r.waiting() == (["b"] if r.state("b") == "waiting" else [])
    if r.state("b") == "cancelled":
        how = {"done": "is done", "failed": "failed", "cancelled": "was cancelled"}[state]
        assert r.reason("b") == ("dependency", f"a {how}")


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("when", ["ok", "failed", "any"])
def test_a_job_comes_after_one_that_is_over(when, state):
    r = Real(real("a"))
    r.decide(0.0, a=on(n0=4))
    for event in ENDS[state]:
        r.tell(event)
    out = r.submit(real("b", after={"a": when}), 6.0)
    assert r.state("b") == outcome(when, state)
    assert [i.state.value for i in out] == (["cancelled"] if r.state("b") == "cancelled" else [])
    assert r.waiting() == (["b"] if r.state("b") == "waiting" else [])


def test_a_job_waits_for_all_of_them():
    r = Real(real("a"), real("b"), real("c", after={"a": "ok", "b": "any"}))
    r.decide(0.0, a=on(n0=4), b=on(n1=4))
    r.tell(JobFailed(1.0, "b", "exit"))
    assert (r.waiting(), r.record("c").trouble.unmet) == ([], {"a": "ok"})
    r.tell(JobFinished(2.0, "a"))
    assert r.waiting() == ["c"]


def test_chains_are_cancelled_to_their_end():
    r = Real(*(real(f"j{k}", after={f"j{k - 1}": "ok"} if k else {}) for k in range(700)))
    ended = r.tell(JobCancelled(1.0, "j0"))
    assert [i.job.job_id for i in ended] == [f"j{k}" for k in range(700)]
    assert {i.state for i in ended} == {S.CANCELLED}
    assert (r.yard.parked, r.yard.records) == ({}, {})


def test_a_chain_that_wants_a_failure_goes_on_where_one_is_cancelled():
    r = Real(real("a"), real("b", after={"a": "ok"}), real("c", after={"b": "failed"}))
    r.tell(JobCancelled(1.0, "a"))
    assert (r.state("b"), r.state("c"), r.waiting()) == ("cancelled", "waiting", ["c"])


def test_a_job_that_waits_for_another_and_is_held_needs_both():
    r = Real(real("a"), real("b", after={"a": "ok"}, hold=True))
    assert r.state("b") == "held"
    r.tell(JobReleased(1.0, "b"))
    assert (r.state("b"), r.waiting()) == ("waiting", ["a"])
    r.decide(1.0, a=on(n0=4))
    r.tell(JobHeld(2.0, "b"))
    r.tell(JobFinished(3.0, "a"))
    assert (r.state("b"), r.waiting()) == ("held", [])
    r.tell(JobReleased(4.0, "b"))
    assert r.waiting() == ["b"]


def test_memory_is_only_of_so_many_jobs_but_those_that_wait_are_told():
    r = Real(real("a"), real("b"), real("c", after={"a": "ok"}), remember=1)
    r.decide(0.0, a=on(n0=4), b=on(n1=4))
    r.tell(JobFinished(1.0, "a"))
    r.tell(JobFinished(1.0, "b"))
    assert (list(r.yard.over.records), r.waiting()) == (["b"], ["c"])
    assert r.why(JobRetried(2.0, "a")).startswith("job a did not fail")


def test_those_that_wait_are_told_though_nothing_is_remembered():
    r = Real(real("a"), real("b", after={"a": "ok"}), remember=0)
    r.decide(0.0, a=on(n0=4))
    r.tell(JobFinished(1.0, "a"))
    assert r.waiting() == ["b"]


# -- retry ---------------------------------------------------------------------------------------------------


def test_a_job_that_is_tried_again_still_waits_for_those_that_are_not_over():
    r = Real(real("a"), real("b"), real("c", after={"a": "ok", "b": "ok"}))
    r.decide(0.0, a=on(n0=4), b=on(n1=4))
    r.tell(JobFailed(1.0, "a", "exit"))
    assert r.state("c") == "cancelled"
    r.tell(JobRetried(2.0, "c"))
    assert (r.state("c"), r.waiting(), r.record("c").trouble.unmet) == ("waiting", [], {"b": "ok"})
    r.tell(JobFinished(3.0, "b"))
    assert r.waiting() == ["c"]  # that `a` failed is known to whoever had it tried again


def test_a_job_and_the_one_it_comes_after_are_both_tried_again():
    r = Real(real("a"), real("b", after={"a": "ok"}))
    r.decide(0.0, a=on(n0=4))
    r.tell(JobFailed(1.0, "a", "exit"))
    r.tell(JobRetried(2.0, "a"))
    r.tell(JobRetried(2.0, "b"))
    assert r.waiting() == ["a"]
    r.decide(2.0, a=on(n0=4))
    r.tell(JobFailed(3.0, "a", "exit"))
    assert r.state("b") == "cancelled"


def test_a_job_that_runs_is_not_ended_by_one_that_it_waited_for_once():
    r = Real(real("a"), real("b", after={"a": "ok"}))
    r.decide(0.0, a=on(n0=4))
    r.tell(JobCancelled(1.0, "b"))
    r.tell(JobRetried(2.0, "b"))
    assert r.record("b").trouble.unmet == {"a": "ok"}
    assert r.waiting() == []
    r.tell(JobFinished(3.0, "a"))
    r.decide(4.0, b=on(n0=4))
    assert r.state("b") == "running"


def test_a_job_that_was_never_started_is_tried_again():
    r = Real(real())
    r.tell(JobCancelled(5.0, "a"))
    r.tell(JobRetried(6.0, "a"))
    (start,) = r.decide(7.0, a=on(n0=4))
    assert (start.attempt, start.finish_s) == (1, 107.0)


# -- holds ---------------------------------------------------------------------------------------------------


def test_a_waiting_job_is_held():
    r = Real(real("a"), real("b"))
    assert r.tell(JobHeld(1.0, "a")) == []
    assert (r.state(), r.waiting(), list(r.yard.parked)) == ("held", ["b"], ["a"])
    r.tell(JobReleased(2.0, "a"))
    assert (r.state(), r.waiting()) == ("waiting", ["a", "b"])  # in its old place


def test_a_job_that_was_going_to_start_is_held_instead():
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    r.decide(1.0, a=None, b=on(n0=4))
    r.tell(JobHeld(2.0, "b"))
    assert (r.state("b"), r.yard.pending, r.yard.free.gpus) == ("held", {}, [4, 4])
    assert r.stopped(3.0, "a") == []


def test_a_running_job_is_held_after_it_saved():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobHeld(25.0, "a")) == [Stop("a")]
    assert (r.state(), r.yard.records) == ("stopping", {})
    assert r.stopped(26.0, "a") == []
    assert (r.state(), r.record().remaining, r.yard.leaving) == ("held", 300.0, {})
    r.tell(JobReleased(30.0, "a"))
    (start,) = r.decide(31.0, a=on(n0=4))
    assert (start.attempt, start.finish_s) == (2, 31.0 + 75.0)


def test_a_stopping_job_is_held_when_it_stopped():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.decide(5.0, a=None)
    assert r.tell(JobHeld(6.0, "a")) == []
    r.stopped(7.0, "a")
    assert r.state() == "held"


def test_a_job_that_is_held_and_released_before_it_stopped_waits():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.tell(JobHeld(5.0, "a"))
    r.tell(JobReleased(6.0, "a"))
    assert (r.state(), r.waiting()) == ("stopping", [])
    r.stopped(7.0, "a")
    assert (r.state(), r.waiting()) == ("waiting", ["a"])


def test_a_job_that_is_killed_is_held_when_it_is_gone():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobFailed(5.0, "a", "killed", gone=False)) == [Kill("a")]
    assert r.tell(JobHeld(6.0, "a")) == []
    assert r.tell(JobGone(7.0, "a")) == []
    assert r.state() == "held"


def test_a_held_job_is_cancelled():
    r = Real(real(hold=True))
    (ended,) = r.tell(JobCancelled(5.0, "a", text="by ann"))
    assert (ended.state, ended.first_start_s, r.yard.parked) == (S.CANCELLED, None, {})


def test_a_job_that_waits_out_its_back_off_may_be_held():
    r = Real(real(retries=1))
    r.decide(0.0, a=on(n0=4))
    r.tell(JobFailed(5.0, "a", "exit"))
    r.tell(JobHeld(6.0, "a"))
    r.wait(15.0)
    assert (r.state(), r.waiting()) == ("held", [])
    r.tell(JobReleased(20.0, "a"))
    assert r.waiting() == ["a"]


def test_a_job_may_be_held_from_the_beginning():
    r = Real(real(hold=True))
    assert (r.state(), list(r.yard.parked), r.waiting()) == ("held", ["a"], [])
