"""Jobs of unknown length in the core: beliefs are revised, and what was done is never lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import Start
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State


def yard_of(*jobs, policy="fifo", past=()):
    yard = Yard(uniform_cluster(1, 4), parse_policy(policy).decide)
    for total_s in past:
        yard.lengths.history.add(Job("past", 0.0, 1), total_s)
    for job in jobs:
        yard.handle(JobSubmitted(job.arrival_s, job))
    return yard


def test_an_unknown_job_is_believed_to_be_as_past_ones():
    yard = yard_of(Job("a", 0.0, 2), past=(100.0, 300.0))
    record = yard.records["a"]
    assert (record.total, record.remaining, record.ideal_s) == (400.0, 400.0, 200.0)
    assert record.length.estimate.source == "history"
    assert yard.snapshot(0.0).remaining_s().tolist() == [200.0]


def test_a_known_one_is_not():
    record = yard_of(Job("a", 0.0, 2, 50.0), past=(100.0,)).records["a"]
    assert record.length is None
    assert record.total == 100.0


def test_a_belief_is_revised_after_a_minute_two_and_so_on_and_at_the_predicted_end():
    """By hand: 100, 200 and 600 s were seen, so 300 s are believed until 100 s are over."""
    yard = yard_of(Job("a", 0.0, 1), past=(100.0, 200.0, 600.0))
    (start,) = yard.handle(DecisionDue(0.0))
    assert isinstance(start, Start)
    assert start.finish_s == 300.0
    record, seen = yard.records["a"], []
    for at_s in (60.0, 119.0, 120.0, 240.0, 480.0, 599.0, 600.0, 960.0):
        yard.handle(DecisionDue(at_s))
        seen.append((at_s, record.total, record.length.look_s))
        validate(yard)
    assert seen == [
        (60.0, 300.0, 120.0),
        (119.0, 300.0, 120.0),
        (120.0, 400.0, 240.0),  # the mean of 200 and 600
        (240.0, 600.0, 480.0),
        (480.0, 600.0, 960.0),
        (599.0, 600.0, 960.0),
        (600.0, 3600.0, 960.0),  # more than was ever seen: a guess
        (960.0, 3600.0, 1920.0),
    ]
    assert record.done_at(1000.0) == 1000.0


def test_nothing_is_revised_before_it_is_due():
    yard = yard_of(Job("a", 0.0, 1), past=(100.0, 200.0, 600.0))
    yard.handle(DecisionDue(0.0))
    before = yard.snapshot(0.0).version
    yard.handle(DecisionDue(59.0))
    assert yard.snapshot(59.0).version == before
    yard.handle(DecisionDue(61.0))
    assert yard.snapshot(61.0).version > before


def test_whoever_runs_longer_than_was_believed_makes_room_for_the_shorter():
    """[V] house 4: without revisions the first would be believed to be nearly done for ever."""
    yard = yard_of(Job("a", 0.0, 4), Job("b", 1.0, 4, 150.0), policy="srtf", past=(100.0, 1000.0))
    for total_s in (90.0, 95.0, 85.0):
        yard.lengths.history.add(Job("x", 0.0, 4, tenant="t"), total_s)
    yard.handle(JobCancelled(2.0, "a"))
    yard.handle(JobSubmitted(2.0, Job("a", 2.0, 4, tenant="t")))
    yard.handle(DecisionDue(2.0))
    assert list(yard.target) == ["a"]  # 90 s are believed of it
    yard.handle(DecisionDue(98.0))
    assert list(yard.target) == ["b"]  # now it is one of the long ones


def test_the_end_tells_how_long_it_was():
    yard = yard_of(Job("a", 0.0, 2), past=(100.0,))
    yard.handle(DecisionDue(0.0))
    (ended, *_) = yard.handle(JobFinished(40.0, "a"))
    assert (ended.ideal_s, ended.undone) == (40.0, 0.0)
    assert yard.lengths.history.record()[0]["totals_s"] == [100.0, 40.0]


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_every_end_of_a_job_that_ran_counts(state):
    yard = yard_of(Job("a", 0.0, 2), Job("b", 0.0, 2, 500.0), Job("c", 0.0, 2))
    yard.handle(DecisionDue(0.0))
    yard.handle(JobFinished(40.0, "a", state))
    yard.handle(JobFinished(50.0, "b", state))
    yard.handle(JobCancelled(50.0, "c"))  # it never ran
    assert yard.lengths.history.record()[0]["totals_s"] == [40.0, 50.0]


def test_a_failure_takes_what_was_done_since_the_checkpoint_and_no_more():
    yard = yard_of(Job("a", 0.0, 1, checkpoint_s=50.0), past=(100.0, 200.0, 600.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(DecisionDue(120.0))
    yard.handle(NodeFailed(130.0, "GPU-0"))
    record = yard.records["a"]
    assert (record.done_at(130.0), record.total) == (100.0, 400.0)
    assert record.remaining == 300.0


STEPS = st.lists(
    st.tuples(st.floats(0.0, 400.0), st.sampled_from(["run", "wait", "fail", "tune"])), max_size=30
)


@settings(deadline=None)
@given(STEPS, st.lists(st.floats(1.0, 1000.0), max_size=5))
def test_samples_done_are_never_lost_by_revisions(steps, past):
    """A job runs, waits, is retuned and loses its node; a count beside the core agrees to the last bit."""
    now = done = saved = 0.0
    plans = {"run": (2, 6.0), "tune": (2, 3.0), "wait": None}
    wanted = [None]

    def decide(snapshot):
        given = wanted[0]
        shares = None if given is None else Allocation((Share("GPU-0", given[0], 0, given[1], 10.0),))
        held = snapshot.target.get("a")
        return Plan({} if shares == held else {"a": shares})

    yard = Yard(uniform_cluster(1, 4), decide)
    for total_s in past:
        yard.lengths.history.add(Job("past", 0.0, 1), total_s)
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 2, checkpoint_s=0.0)))
    record, since, rate = yard.records["a"], 0.0, 0.0
    for wait_s, what in steps:
        now += wait_s
        if what == "fail":
            yard.handle(NodeFailed(now, "GPU-0"))
            yard.handle(NodeRepaired(now, "GPU-0"))
            if rate and now > since:  # it wrote a checkpoint at every moment
                saved = done + rate * (now - since)
            done, rate = (saved, 0.0) if rate else (done, 0.0)
        else:
            before = yard.target.get("a")
            wanted[0] = plans[what]
            for told in yard.handle(DecisionDue(now)):
                if type(told).__name__ == "Stop":
                    yard.handle(JobStopped(now, "a"))
            if yard.target.get("a") != before:
                done, since = (done + rate * (now - since) if rate and now > since else done), now
                saved = done
                rate = 0.0 if what == "wait" else 2.0
        assert record.done_at(now) == (done + rate * (now - since) if rate else done)
        assert record.total >= record.length.done
        assert record.remaining > 0
        validate(yard)


@pytest.mark.parametrize(("done", "more"), [(99.0, False), (100.0, True), (101.0, True)])
def test_a_job_that_did_all_that_was_believed_has_more_to_do(done, more):
    yard = yard_of(Job("a", 0.0, 1), past=(100.0,))
    yard.handle(DecisionDue(0.0))
    yard.handle(ProgressReported(50.0, "a", done))
    record = yard.records["a"]
    assert (record.total > 100.0) is more
    assert record.remaining == record.total - done > 0
