"""How processes leave: GPUs come free when it is certain, node by node; what was not saved is lost."""

from __future__ import annotations

import pytest

from real_cases import Real, on, real
from trainyard.core.events import (
    CheckpointWritten,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobRetried,
    JobStopped,
    NodeFailed,
    NodeFenced,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import Fence, Kill, Start, Stop
from trainyard.model.job import Job
from trainyard.model.terms import Terms
from trainyard.state.lifecycle import State

S = State


def started(instructions):
    return [i.job_id for i in instructions if isinstance(i, Start)]


def test_after_a_cancel_the_gpus_are_given_away_when_the_processes_are_gone():
    """[V] house 7."""
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobCancelled(5.0, "a", at_once=True)) == [Kill("a")]
    assert (r.state("a"), r.yard.free.gpus) == ("killing", [4, 4])  # what plans may count on
    assert r.decide(6.0, b=on(n0=4)) == []  # it has to wait
    ended, start = r.tell(JobGone(9.0, "a", attempt=1))
    assert (ended.state, ended.finish_s, ended.gpu_s) == (S.CANCELLED, 9.0, 20.0)
    assert (start.job_id, start.finish_s) == ("b", 109.0)


def test_after_a_failure_of_a_node_a_gang_leaves_its_other_node_when_it_says_so():
    """[V] house 7."""
    r = Real(real("wide", 8), real("b"), nodes=3)
    r.decide(0.0, wide=on(n0=4, n1=4))
    assert r.tell(NodeFailed(5.0, "GPU-0")) == [Kill("wide"), Fence("GPU-0")]
    assert r.decide(6.0, b=on(n1=4)) == []
    assert started(r.tell(JobGone(7.0, "wide", 1, "GPU-1"))) == ["b"]
    assert r.state("wide") == "killing"  # of GPU-0 nobody knows
    assert r.tell(NodeFenced(8.0, "GPU-0")) == []
    assert (r.state("wide"), r.waiting()) == ("waiting", ["wide"])


def test_a_node_that_is_back_is_not_used_before_it_is_known_to_be_empty():
    r = Real(real("a"), real("b"), nodes=1)
    r.decide(0.0, a=on(n0=4))
    r.tell(NodeFailed(5.0, "GPU-0"))
    r.tell(NodeRepaired(7.0, "GPU-0"))  # back, empty
    assert (r.state("a"), r.yard.leaving) == ("waiting", {})
    assert started(r.decide(8.0, b=on(n0=4))) == ["b"]


def test_a_job_may_be_planned_again_while_it_is_killed_but_starts_after_it():
    r = Real(real("wide", 8), nodes=3)
    r.decide(0.0, wide=on(n0=4, n1=4))
    r.tell(NodeFailed(25.0, "GPU-0"))
    assert r.waiting() == ["wide"]
    assert r.decide(26.0, wide=on(n1=4, n2=4)) == []
    assert r.tell(JobGone(27.0, "wide", 1, "GPU-1")) == []
    (start,) = r.tell(NodeFenced(28.0, "GPU-0"))
    assert (start.job_id, start.attempt, start.finish_s) == ("wide", 2, 28.0 + 80.0)


def test_one_member_lost_stops_all_members():
    r = Real(real("wide", 8))
    r.decide(0.0, wide=on(n0=4, n1=4))
    assert r.tell(JobGone(25.0, "wide", 1, "GPU-1")) == [Kill("wide")]
    assert (r.state("wide"), r.reason("wide")) == (
        "killing",
        ("lost_shim", "its processes on GPU-1 are gone"),
    )
    assert r.tell(JobGone(26.0, "wide", 1, "GPU-0")) == []
    assert (r.state("wide"), r.record("wide").remaining) == ("waiting", 800.0 - 160.0)


def test_a_whole_run_that_vanishes_is_lost_never_done():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobGone(25.0, "a")) == []
    assert (r.state(), r.waiting(), r.record().remaining) == ("waiting", ["a"], 320.0)
    assert r.reason() == ("lost_shim", "its processes are gone")


def test_a_cancel_lets_a_job_save_first():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobCancelled(25.0, "a", text="by ann")) == [Stop("a")]
    assert (r.state(), list(r.yard.parked)) == ("stopping", ["a"])
    (ended,) = r.stopped(26.0, "a")
    assert (ended.state, ended.undone, r.reason()) == (S.CANCELLED, 0.75, ("user", "by ann"))


def test_a_job_that_ends_while_it_is_cancelled_is_cancelled():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.tell(JobCancelled(25.0, "a"))
    (ended,) = r.tell(JobFinished(26.0, "a"))
    assert ended.state is S.CANCELLED


def test_a_job_that_ends_while_it_is_preempted_held_or_killed_is_done():
    for told in (JobHeld(5.0, "a"), JobFailed(5.0, "a", "killed", gone=False)):
        r = Real(real())
        r.decide(0.0, a=on(n0=4))
        r.tell(told)
        (ended,) = r.tell(JobFinished(6.0, "a"))
        assert (ended.state, r.yard.leaving) == (S.DONE, {})


def test_what_a_job_was_to_become_does_not_outlive_it():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.tell(JobHeld(5.0, "a"))
    r.tell(JobFinished(6.0, "a", State.FAILED))
    r.tell(JobRetried(7.0, "a"))
    r.decide(8.0, a=on(n0=4))
    r.decide(9.0, a=None)
    r.stopped(10.0, "a")
    assert (r.state(), r.waiting()) == ("waiting", ["a"])  # not held


def test_a_crash_while_stopping_counts():
    r = Real(real(retries=1))
    r.decide(0.0, a=on(n0=4))
    r.decide(5.0, a=None)
    assert r.tell(JobFailed(6.0, "a", "crash")) == []
    assert (r.state(), r.record().trouble.counted, r.wake_s) == ("waiting", 1, 16.0)


# -- what is saved and what is lost --------------------------------------------------------------------------


def test_a_stop_that_saved_keeps_all_work():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.stopped(30.0, "a")
    (start,) = r.decide(40.0, a=on(n0=4))
    assert start.finish_s == 40.0 + 75.0


def test_a_stop_that_did_not_save_goes_back_to_the_last_checkpoint():
    r = Real(real())
    for k in (1, 2):
        now = 100.0 * k
        r.decide(now, a=on(n0=4))
        r.decide(now + 5.0, a=None)
        r.stopped(now + 6.0, "a", saved=False)
        assert (r.record().remaining, r.record().trouble.unsaved) == (400.0, k)
        assert r.reason() == ("not_saved", "it stopped without a checkpoint; back to the start")
    r.decide(300.0, a=on(n0=4))
    r.decide(305.0, a=None)
    r.stopped(306.0, "a")
    assert (r.record().remaining, r.record().trouble.unsaved) == (380.0, 0)


def test_a_stop_that_did_not_save_takes_the_work_of_a_job_of_unknown_length():
    r = Real(Job("a", 0.0, 4, checkpoint_s=10.0, terms=Terms()))
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.stopped(26.0, "a", saved=False)
    assert r.record().done_at(30.0) == r.record().length.done == 80.0


@pytest.mark.parametrize(
    "end",
    [
        JobGone(30.0, "a"),
        JobGone(30.0, "a", node="GPU-0"),
        JobFailed(30.0, "a", "killed"),
        JobStopped(30.0, "a", saved=False),
    ],
    ids=repr,
)
def test_a_job_that_dies_while_stopping_has_saved_nothing_more(end):
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.tell(end)
    assert (r.state(), r.record().remaining) == ("waiting", 320.0)


def test_a_gang_that_dies_node_by_node_while_stopping_has_saved_nothing_more():
    r = Real(real("a", 8))
    r.decide(0.0, a=on(n0=4, n1=4))
    r.decide(25.0, a=None)
    r.tell(JobGone(30.0, "a", node="GPU-0"))
    r.tell(JobGone(31.0, "a", node="GPU-1"))
    assert (r.state(), r.record().remaining) == ("waiting", 640.0)


def test_a_node_that_fails_while_a_job_saves_there_takes_its_work():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.tell(NodeFailed(26.0, "GPU-0"))
    r.tell(NodeFenced(27.0, "GPU-0"))
    assert (r.state(), r.record().remaining) == ("waiting", 320.0)


def test_a_checkpoint_that_was_reported_while_stopping_counts():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.decide(25.0, a=None)
    r.tell(CheckpointWritten(26.0, "a", 100.0))
    r.tell(JobGone(27.0, "a"))
    assert r.record().remaining == 300.0


@pytest.mark.parametrize("length", [{"duration_s": 100.0}, {"duration_s": None}], ids=["known", "unknown"])
def test_a_job_that_was_cancelled_goes_on_from_what_it_saved_then(length):
    r = Real(real(**length))
    r.decide(0.0, a=on(n0=4))
    r.tell(JobCancelled(25.0, "a"))
    r.stopped(26.0, "a")
    r.tell(JobRetried(50.0, "a"))
    record = r.record()
    assert (r.state(), r.waiting(), record.done_at(50.0)) == ("waiting", ["a"], 100.0)
    assert record.remaining > 0
    (start,) = r.decide(60.0, a=on(n0=4))
    assert (start.attempt, start.finish_s) == (2, 60.0 + record.remaining / 4)


def test_a_job_of_unknown_length_that_failed_is_not_believed_to_end_there():
    r = Real(real(duration_s=None))
    r.decide(0.0, a=on(n0=4))
    r.tell(JobFailed(25.0, "a", "exit"))
    assert r.record().total == 80.0  # so much was all that it did
    r.tell(JobRetried(50.0, "a"))
    record = r.record()
    assert (record.length.known, record.length.done) == (False, 80.0)
    assert record.total > 80.0 + 4.0


def test_a_job_that_told_its_length_and_was_tried_again_knows_it_as_it_was_submitted():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    r.tell(ProgressReported(25.0, "a", 100.0, samples_total=1000.0))
    r.tell(CheckpointWritten(25.0, "a", 100.0))
    r.tell(JobFailed(30.0, "a", "exit"))
    r.tell(JobRetried(50.0, "a"))
    assert (r.record().total, r.record().remaining) == (400.0, 300.0)


def test_who_saves_nothing_again_and_again_gets_more_time_to_stop():
    r, told = Real(real("a")), []
    for k in range(6):
        r.decide(10.0 * k, a=on(n0=4))
        told += [i.patience for i in r.decide(10.0 * k + 5.0, a=None)]
        r.stopped(10.0 * k + 6.0, "a", saved=k == 4)
    assert told == [1.0, 1.0, 1.0, 2.0, 4.0, 1.0]
