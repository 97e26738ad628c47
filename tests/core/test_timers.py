"""What becomes due by itself: time limits over several attempts, longest waits."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from real_cases import Real, on, real
from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobChanged,
    JobFailed,
    JobHeld,
    JobReleased,
    JobRetried,
    NodeDrained,
    NodeFailed,
    NodeFenced,
)
from trainyard.core.instructions import Stop
from trainyard.core.real.timers import Timers
from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.state.lifecycle import State


def test_a_heap_of_moments():
    timers = Timers()
    timers.at(5.0, "b")
    timers.at(inf, "never")
    timers.at(3.0)
    assert (timers.due_s, timers.entries()) == (3.0, [(3.0, ""), (5.0, "b")])
    twin = timers.copy()
    twin.at(1.0, "c")
    assert (timers.due_s, twin.due_s) == (3.0, 1.0)
    twin.restore([])
    assert (twin.due_s, twin.entries(), len(timers.entries())) == (inf, [], 2)


def test_a_time_limit_lets_the_job_save_and_ends_it():
    r = Real(real(time_limit_s=60.0))
    r.decide(10.0, a=on(n0=4))
    assert r.wake_s == 70.0
    assert r.wait(69.9) == []
    assert r.wait(70.0) == [Stop("a")]
    (ended,) = r.stopped(72.0, "a")
    assert (ended.state, ended.finish_s, ended.gpu_s, ended.undone) == (State.FAILED, 72.0, 240.0, 0.4)
    assert r.reason() == ("time_limit", "its time limit of 60 s is over; it reported no checkpoint")


def test_any_event_notices_that_time_is_up():
    r = Real(real(time_limit_s=60.0))
    r.decide(0.0, a=on(n0=4))
    assert r.tell(NodeDrained(61.0, "GPU-1")) == [Stop("a")]


def test_a_time_limit_counts_running_only_over_all_attempts():
    r = Real(real(time_limit_s=60.0, retries=1), start_s=5.0, restart_s=7.0)
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.stopped(40.0, "a")
    r.decide(100.0, a=on(n0=4))  # 25 s are spent
    r.tell(JobFailed(120.0, "a", "exit"))
    r.decide(500.0, a=on(n0=4))  # 45 s are spent
    assert r.wake_s == 515.0
    assert r.wait(514.0) == []
    assert r.wait(515.0) == [Stop("a")]


def test_a_job_over_its_limit_fails_though_it_dies_while_stopping():
    r = Real(real(time_limit_s=60.0))
    r.decide(0.0, a=on(n0=4))
    r.wait(60.0)
    r.tell(NodeFailed(61.0, "GPU-0"))
    (ended,) = r.tell(NodeFenced(62.0, "GPU-0"))
    assert (ended.state, r.reason()[0]) == (State.FAILED, "time_limit")


def test_it_goes_on_with_a_longer_limit():
    r = Real(real(time_limit_s=60.0))
    r.decide(0.0, a=on(n0=4))
    r.wait(60.0)
    r.stopped(60.0, "a")
    r.tell(JobRetried(100.0, "a"))
    r.tell(JobChanged(100.0, "a", {"time_limit_s": 90}))
    (start,) = r.decide(100.0, a=on(n0=4))
    assert (start.finish_s, r.wake_s) == (140.0, 130.0)
    assert r.wait(130.0) == [Stop("a")]


def test_a_limit_is_changed_while_the_job_runs():
    r = Real(real(time_limit_s=60.0), Job("trace", 0.0, 4, 100.0))
    r.decide(0.0, a=on(n0=4), trace=on(n1=4))
    r.tell(JobChanged(10.0, "a", {"time_limit_s": inf}))
    assert r.wait(70.0) == []
    r.tell(JobChanged(75.0, "a", {"time_limit_s": 80.0}))
    assert r.wake_s == 80.0
    r.tell(JobChanged(75.0, "trace", {"time_limit_s": 30.0}))
    assert r.wait(75.0) == [Stop("trace")]
    assert r.wait(80.0) == [Stop("a")]


moments = st.floats(0.001, 1e5)


@given(st.floats(0.0, 2e9), moments, st.lists(st.tuples(moments, moments), max_size=4), st.data())
def test_no_rounding_lets_a_job_run_on(begin, limit_s, runs, data):
    """When it is asked at the moment that was told, the limit is seen."""
    r = Real(real(time_limit_s=limit_s, duration_s=1e9))
    now = begin
    for ran, waited in runs:
        r.decide(now, a=on(n0=4))
        if r.yard.now_s + ran >= r.wake_s:
            break
        if data.draw(st.booleans()):  # other CPUs: the same run goes on
            r.decide(now + ran / 2, a=Allocation((Share("GPU-0", 4, 0, 6.0, 250.0),)))
        r.decide(now + ran, a=None)
        r.stopped(now + ran, "a")
        now += ran + waited
    if r.state() == "waiting":
        r.decide(now, a=on(n0=4))
    for _ in range(8):  # those of earlier runs come, too
        if r.state() == "running" and r.wake_s < inf:
            r.decide(r.wake_s)
    assert r.state() in ("stopping", "failed")


# -- longest waits -------------------------------------------------------------------------------------------


def test_a_job_that_is_not_started_in_time_has_failed():
    r = Real(real(max_wait_s=60.0))
    assert r.wake_s == 60.0
    assert r.wait(59.9) == []
    (ended,) = r.wait(60.0)
    assert (ended.state, ended.finish_s, ended.first_start_s) == (State.FAILED, 60.0, None)
    assert r.reason() == ("max_wait", "not started in 60 s")


def test_a_job_that_started_once_may_wait_for_ever():
    r = Real(real(max_wait_s=60.0))
    r.decide(50.0, a=on(n0=4))
    r.decide(55.0, a=None)
    r.stopped(55.0, "a")
    assert r.wait(1000.0) == []
    assert r.state() == "waiting"


def test_held_dependent_and_planned_jobs_wait_no_longer():
    r = Real(
        real("run"),
        real("held", max_wait_s=60.0, hold=True),
        real("after", max_wait_s=60.0, after={"run": "ok"}),
        real("next", max_wait_s=60.0),
    )
    r.decide(0.0, run=on(n0=4))
    r.decide(50.0, run=None, next=on(n0=4))
    ended = r.wait(60.0)
    assert sorted(i.job.job_id for i in ended) == ["after", "held", "next"]
    assert {i.state for i in ended} == {State.FAILED}
    assert (r.yard.parked, r.yard.pending, r.yard.target) == ({}, {}, {})


def test_a_job_that_is_tried_again_waits_as_long_once_more():
    r = Real(real(max_wait_s=60.0))
    r.wait(60.0)
    r.tell(JobRetried(100.0, "a"))
    assert r.wake_s == 160.0
    r.tell(JobChanged(110.0, "a", {"priority": 3}))
    assert r.wait(159.0) == []
    (ended,) = r.wait(160.0)
    assert ended.state is State.FAILED


def test_a_job_that_is_over_is_not_looked_at():
    r = Real(real(max_wait_s=60.0, time_limit_s=10.0), real("b", max_wait_s=30.0))
    r.tell(JobCancelled(5.0, "a"))
    r.tell(JobHeld(6.0, "b"))
    r.tell(JobReleased(7.0, "b"))
    (ended,) = r.tell(DecisionDue(100.0))
    assert ended.job.job_id == "b"
    assert (r.yard.timers.due_s, r.wake_s) == (inf, inf)
