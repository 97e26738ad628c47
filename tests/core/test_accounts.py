"""What the core keeps of a job and says of it when it ends."""

from __future__ import annotations

import pytest

from conftest import SERVED
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
from trainyard.core.instructions import Ended
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.state.lifecycle import State

ELASTIC = {"min_gpus": 1, "max_gpus": 4}


def held(gpus=2, node="GPU-0"):
    return Allocation((Share(node, gpus, 0, 3.0 * gpus, 62.5 * gpus),))


def yard_of(plans, *jobs, cluster=None):
    turns = iter(plans)
    yard = Yard(cluster or uniform_cluster(1, 4), lambda snapshot: Plan(next(turns)))
    for job in jobs:
        yard.handle(JobSubmitted(job.arrival_s, job))
    return yard


def test_the_end_of_a_job_by_hand():
    job = Job("a", 5.0, 2, 100.0)
    yard = yard_of([{"a": held()}], job)
    yard.handle(DecisionDue(8.0))
    (ended,) = yard.handle(JobFinished(58.0, "a", State.FAILED))
    assert ended == Ended(
        job,
        State.FAILED,
        finish_s=58.0,
        first_start_s=8.0,
        ideal_s=100.0,
        fair_s=100.0,
        gpu_s=100.0,
        restarts=0,
        preemptions=0,
        undone=0.5,
    )


def test_the_end_of_a_job_that_was_interrupted():
    yard = yard_of([{"a": held()}, {"a": None}, {"a": held()}], Job("a", 0.0, 2, 100.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(DecisionDue(10.0))
    yard.handle(JobStopped(10.0, "a"))
    yard.handle(DecisionDue(20.0))
    (ended,) = yard.handle(JobFinished(110.0, "a"))
    assert (ended.first_start_s, ended.gpu_s, ended.undone) == (0.0, 200.0, 0.0)
    assert (ended.restarts, ended.preemptions) == (1, 1)


def test_a_job_that_never_ran_has_all_its_work_undone():
    yard = yard_of([], Job("a", 0.0, 2, 100.0))
    (ended,) = yard.handle(JobCancelled(30.0, "a"))
    assert (ended.first_start_s, ended.gpu_s, ended.undone) == (None, 0.0, 1.0)


def test_work_is_not_undone_by_a_late_end():
    yard = yard_of([{"a": held()}], Job("a", 0.0, 2, 100.0))
    yard.handle(DecisionDue(0.0))
    (ended,) = yard.handle(JobFinished(150.0, "a"))
    assert ended.undone == 0.0


@pytest.mark.parametrize(("gpus", "fair_s"), [(1, 100.0), (2, 100.0), (3, 150.0), (4, 200.0)])
def test_a_fair_share_is_no_faster_than_running_alone(gpus, fair_s):
    """Two jobs on four GPUs: each is due two of them."""
    yard = yard_of([{"a": held(gpus)}], Job("a", 0.0, gpus, 100.0), Job("b", 0.0, 1, 100.0))
    yard.handle(DecisionDue(0.0))
    (ended,) = yard.handle(JobFinished(100.0, "a"))
    assert ended.fair_s == fair_s


def test_a_job_that_ends_as_it_comes_met_those_who_are_there():
    jobs = [Job(name, 0.0, 4, 100.0) for name in "abc"]
    yard = yard_of([], *jobs)
    (ended,) = yard.handle(JobCancelled(0.0, "b"))
    assert ended.fair_s == 300.0


def test_the_shortest_life_has_a_mean_of_its_own():
    yard = yard_of([], Job("a", 0.0, 4, 100.0))
    yard.handle(JobSubmitted(0.25, Job("b", 0.25, 4, 100.0)))
    (ended,) = yard.handle(JobCancelled(0.5, "a"))
    assert ended.fair_s == 150.0  # alone for the first half


def test_jobs_met_are_averaged_over_a_life():
    yard = yard_of([], Job("a", 0.0, 4, 100.0))
    yard.handle(JobSubmitted(10.0, Job("b", 10.0, 4, 100.0)))
    yard.handle(JobCancelled(30.0, "b"))
    (ended,) = yard.handle(JobCancelled(40.0, "a"))
    assert ended.fair_s == 100.0 * (10 * 1 + 20 * 2 + 10 * 1) / 40


def test_ids_may_be_used_again_once_a_job_is_over():
    yard = yard_of([], Job("a", 0.0, 1, 1.0))
    yard.handle(JobCancelled(1.0, "a"))
    yard.handle(JobSubmitted(2.0, Job("a", 2.0, 1, 1.0)))
    assert yard.records["a"].seq == 2
    assert len(yard.story.of("a")) == 5


def test_reported_progress_of_an_elastic_job_tells_its_speed():
    yard = yard_of([{"a": held()}], Job("a", 0.0, 2, 100.0, **ELASTIC))
    yard.handle(DecisionDue(0.0))
    yard.handle(ProgressReported(10.0, "a", 30.0))
    assert yard.snapshot(10.0).seen(0) == {(2, 0): (10.0, 30.0)}
    yard.handle(ProgressReported(10.0, "a", 40.0))  # no time has passed
    yard.handle(ProgressReported(12.0, "a", 35.0))  # it went backwards
    assert yard.snapshot(12.0).seen(0) == {(2, 0): (10.0, 30.0)}
    assert yard.snapshot(12.0).remaining_samples()[0] == 165.0


def test_reported_progress_of_others_tells_nothing_of_speeds():
    yard = yard_of([{"rigid": held()}], Job("rigid", 0.0, 2, 100.0), Job("idle", 0.0, 2, 100.0, **ELASTIC))
    yard.handle(DecisionDue(0.0))
    for job_id in ("rigid", "idle"):
        yard.handle(ProgressReported(10.0, job_id, 50.0))
        assert yard.records[job_id].seen is None


def test_a_late_report_tells_nothing():
    yard = yard_of([{"a": held()}], Job("a", 0.0, 2, 100.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(ProgressReported(20.0, "a", 50.0))
    yard.handle(ProgressReported(10.0, "a", 60.0))
    assert yard.snapshot(25.0).remaining_samples()[0] == 150.0 - 2.5 * 5


def test_a_loss_is_kept_with_the_samples_done():
    yard = yard_of([{"a": held()}], Job("a", 0.0, 2, 100.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(ProgressReported(10.0, "a", 50.0))
    yard.handle(ProgressReported(20.0, "a", 80.0, loss=0.75))
    assert yard.records["a"].see().losses == [(80.0, 0.75)]


def test_a_report_may_change_the_place_in_line():
    yard = yard_of([{"a": held(2)}], Job("a", 0.0, 2, 100.0))
    yard.handle(DecisionDue(0.0))
    before = yard.snapshot(0.0).version
    yard.handle(ProgressReported(10.0, "a", 50.0))
    assert yard.table.changed.since(before) == [yard.records["a"]]


def test_time_on_each_type_is_kept_where_types_differ():
    cluster = Cluster("two", (Node("f", "fast", 4, 12, 250), Node("s", "slow", 4, 12, 250)))
    yard = yard_of([{"a": held(2, "s")}, {"a": None}], Job("a", 0.0, 2, 100.0), cluster=cluster)
    yard.handle(DecisionDue(0.0))
    yard.handle(DecisionDue(7.0))
    assert yard.records["a"].see().type_s == [0.0, 7.0]


def test_nothing_became_free_since_the_last_decision():
    yard = yard_of([{"a": held()}, {}, {}, {}, {"a": None}], Job("a", 0.0, 2, 100.0), Job("b", 0.0, 1, 9.0))
    freed = yard.snapshot(0.0).freed
    for event in (DecisionDue(0.0), ProgressReported(1.0, "a", 10.0), JobCancelled(1.5, "b")):
        yard.handle(event)
        assert yard.snapshot(1.5).freed == freed
    for event in (NodeFailed(2.0, "GPU-0"), NodeRepaired(3.0, "GPU-0")):
        yard.handle(event)
        assert yard.snapshot(3.0).freed > freed
        freed = yard.snapshot(3.0).freed
        yard.handle(DecisionDue(3.0))
        assert yard.snapshot(3.0).freed == freed


def test_an_end_frees_something():
    yard = yard_of([{"a": held()}], Job("a", 0.0, 2, 100.0), Job("b", 0.0, 1, 9.0))
    yard.handle(DecisionDue(0.0))
    freed = yard.snapshot(0.0).freed
    yard.handle(JobFinished(5.0, "a"))
    assert yard.snapshot(5.0).freed > freed


def test_work_of_a_profiled_job_is_in_samples():
    job = Job("a", 0.0, 2, samples=6400.0, profile=SERVED)
    yard = yard_of([], job, cluster=uniform_cluster(1, 4, "V100"))
    rate = yard.speed.reference_rate(job)
    snapshot = yard.snapshot(0.0)
    assert snapshot.remaining_samples().tolist() == [6400.0]
    assert snapshot.remaining_s()[0] == yard.records["a"].ideal_s == pytest.approx(6400.0 / rate)
