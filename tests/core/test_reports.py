"""Reports correct beliefs: done, rate, speeds of the kind, length, checkpoints."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from profile_cases import SERVED
from real_cases import Real, on, real
from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    JobCancelled,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import Start, Stop
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.state.beliefs import Told

PROFILED = Job("a", 0.0, 2, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=4)


def yard_of(*jobs, policy="fifo"):
    yard = Yard(uniform_cluster(2, 4), parse_policy(policy).decide)
    for job in jobs:
        yard.handle(JobSubmitted(job.arrival_s, job))
    yard.handle(DecisionDue(0.0))
    return yard


def test_a_job_ten_times_slower_than_predicted_does_not_keep_its_rate():
    """[V] house 4."""
    yard = yard_of(Job("a", 0.0, 2, 100.0))
    record = yard.records["a"]
    assert record.rate == 2.0
    yard.handle(ProgressReported(50.0, "a", 10.0))
    assert record.rate == pytest.approx(0.2)
    assert record.remaining_at(60.0) == pytest.approx(200.0 - 10.0 - 2.0)
    assert record.remaining_s(50.0) == pytest.approx(950.0)  # of a job that takes ten times as long
    validate(yard)


def test_a_told_speed_counts_more_than_a_measured_one():
    yard = yard_of(Job("a", 0.0, 2, 100.0))
    yard.handle(ProgressReported(50.0, "a", 10.0, samples_per_s=0.5))
    assert yard.records["a"].rate == 0.5


def test_a_speed_is_measured_between_reports_and_from_the_start_of_a_run():
    yard = yard_of(Job("a", 0.0, 2, 100.0))
    record = yard.records["a"]
    for at_s, done, rate in ((10.0, 10.0, 1.0), (20.0, 30.0, 2.0), (20.5, 35.0, 2.0), (30.5, 45.0, 1.0)):
        yard.handle(ProgressReported(at_s, "a", done))
        assert record.rate == rate  # half a second tells no speed


def test_predicted_work_is_not_written_down_as_seen_once_a_job_has_reported():
    """[V] house 4: only what was reported is in `seen`, here and in the snapshot."""
    yard = yard_of(Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4), policy="fifo+fixed")
    record = yard.records["a"]
    yard.handle(ProgressReported(10.0, "a", 5.0))
    assert yard.snapshot(40.0).seen(0) == {(2, 0): (10.0, 5.0)}
    yard.handle(NodeFailed(50.0, "GPU-0"))
    assert record.see().ran == {(2, 0): (10.0, 5.0)}


def test_who_never_reports_is_believed_by_the_model():
    yard = yard_of(Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4))
    assert yard.snapshot(40.0).seen(0) == {(2, 0): (40.0, 80.0)}


def test_a_measured_speed_corrects_all_that_is_believed_of_its_kind():
    other = Job(
        "b", 0.0, 2, samples=1e6, profile=replace(SERVED, batch=SERVED.batch * 2), min_gpus=1, max_gpus=4
    )
    yard = yard_of(PROFILED, other)
    record, model = yard.records["a"], yard.model
    by_model, curve = record.rate, Told(yard.snapshot(0.0)).curve(0)
    left_s = yard.snapshot(0.0).remaining_s().tolist()
    yard.handle(ProgressReported(0.0, "a", 0.0, samples_per_s=by_model / 8))
    after = yard.snapshot(0.0)
    assert after.remaining_s().tolist() == pytest.approx([8 * left_s[0], left_s[1]])
    assert Told(after).curve(0) == pytest.approx(curve / 8)
    assert after.speed.rate(other, record.occupies) == model.rate(other, record.occupies)
    yard.handle(JobSubmitted(1.0, replace(PROFILED, job_id="c")))
    yard.handle(DecisionDue(1.0))
    assert yard.records["c"].rate == pytest.approx(by_model / 8)  # a later start
    assert yard.records["c"].total == 1e6
    assert yard.records["c"].remaining_s(1.0) == pytest.approx(8 * left_s[0])
    validate(yard)


def test_small_differences_change_nothing_that_is_believed():
    yard = yard_of(PROFILED)
    rate = yard.records["a"].rate
    yard.snapshot(0.0).caches["kept"] = 1
    yard.handle(ProgressReported(1.0, "a", rate * 1.05))
    assert yard.speed is yard.model
    assert yard.snapshot(1.0).caches == {"kept": 1}
    yard.handle(ProgressReported(11.0, "a", rate * 21.05))
    assert yard.speed is not yard.model
    assert not yard.snapshot(11.0).caches


def test_a_job_without_a_profile_tells_of_itself_only():
    yard = yard_of(Job("a", 0.0, 2, 100.0), Job("b", 0.0, 2, 100.0))
    yard.handle(ProgressReported(10.0, "a", 2.0))
    assert yard.records["b"].remaining_s(0.0) == 100.0
    yard.handle(NodeFailed(10.0, "GPU-0"))
    yard.handle(NodeRepaired(10.0, "GPU-0"))
    starts = [i for i in yard.handle(DecisionDue(10.0)) if isinstance(i, Start)]
    assert {start.job_id: start.samples_per_s for start in starts} == {"a": pytest.approx(0.2), "b": 2.0}


def test_a_total_makes_an_unknown_length_known():
    yard = yard_of(Job("a", 0.0, 2))
    record = yard.records["a"]
    yard.handle(ProgressReported(10.0, "a", 20.0, samples_total=1000.0))
    assert (record.total, record.remaining, record.length.estimate.source) == (1000.0, 980.0, "told")
    before = yard.snapshot(0.0).version
    yard.handle(DecisionDue(4000.0))  # no belief is due any more
    assert yard.snapshot(0.0).version == before
    assert record.done_at(4000.0) == pytest.approx(20.0 + 2 * 3990.0)


def test_a_total_corrects_a_known_length():
    yard = yard_of(Job("a", 0.0, 2, 100.0))
    yard.handle(ProgressReported(10.0, "a", 20.0, samples_total=50.0))
    assert yard.records["a"].remaining == 30.0


def test_an_unknown_job_that_did_more_than_was_believed_has_more_to_do():
    yard = yard_of(Job("a", 0.0, 2))
    record = yard.records["a"]
    yard.handle(ProgressReported(10.0, "a", 2 * 5000.0))
    assert record.length.done == 10_000.0
    assert record.remaining > 0


def test_only_reported_checkpoints_count_once_a_job_has_reported():
    yard = yard_of(Job("a", 0.0, 2, 1000.0, checkpoint_s=10.0))
    record = yard.records["a"]
    yard.handle(CheckpointWritten(25.0, "a", 40.0))
    yard.handle(ProgressReported(50.0, "a", 100.0))
    yard.handle(NodeFailed(60.0, "GPU-0"))
    assert record.done_at(60.0) == 40.0
    validate(yard)


def test_a_checkpoint_of_more_than_was_believed_is_progress_too():
    yard = yard_of(Job("a", 0.0, 2))
    record = yard.records["a"]
    yard.handle(CheckpointWritten(25.0, "a", 400.0))
    assert (record.done_at(25.0), record.length.saved) == (400.0, 400.0)


@pytest.mark.parametrize("done", [nan, -1.0, inf])
def test_what_is_no_number_of_samples_tells_nothing(done):
    yard = yard_of(Job("a", 0.0, 2, 100.0))
    before = yard.records["a"].copy()
    for event in (ProgressReported(5.0, "a", done), CheckpointWritten(5.0, "a", done)):
        yard.handle(event)
        assert (yard.records["a"].remaining, yard.records["a"].rate) == (before.remaining, before.rate)


def test_a_waiting_job_may_report_late_what_it_did():
    yard = yard_of(Job("a", 0.0, 8, 100.0), policy="srtf")
    yard.handle(JobSubmitted(1.0, Job("b", 1.0, 8, 10.0)))
    (stop, *_) = yard.handle(DecisionDue(2.0))
    assert stop == Stop("a")
    yard.handle(JobStopped(3.0, "a"))
    yard.handle(ProgressReported(4.0, "a", 5.0))
    assert yard.records["a"].remaining == 795.0
    assert yard.records["a"].rate == 0.0
    yard.handle(JobCancelled(5.0, "a"))
    validate(yard)


def test_what_was_done_by_a_moment_that_nobody_reported_tells_no_speed():
    r = Real(real())
    r.decide(0.0, a=on(n0=4))
    (retune,) = r.decide(10.0, a=Allocation((Share("GPU-0", 4, 0, 10.0, 250.0),)))
    assert retune.samples_per_s == 4.0
    r.tell(ProgressReported(20.0, "a", 60.0))
    record = r.record()
    assert (record.remaining, record.rate, record.pace) == (340.0, 4.0, 1.0)
    r.tell(ProgressReported(30.0, "a", 80.0))
    assert (record.rate, record.pace) == (2.0, 0.5)
