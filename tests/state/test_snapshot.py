"""What a policy sees of one moment, computed by hand; and that a fork is independent."""

from __future__ import annotations

from math import inf

import pytest

from conftest import SERVED
from trainyard.core.events import (
    DecisionDue,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
from trainyard.model.estimate import Estimate
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.tolerance import CPUS_GB
from trainyard.state.capacity import held_by_type, seconds_by_type, up_by_type, up_capacity
from trainyard.state.jobs import Column
from trainyard.state.length import Length

TWO = Cluster(
    "two types",
    (Node("f", "fast", 4, 12, 64), Node("s", "slow", 4, 12, 64)),
    {"slow": GpuType("slow", 0.5)},
)

ROW = {
    "SEQ": 2.0,
    "ARRIVAL": 3.0,
    "GPUS": 2.0,
    "LEAST": 1.0,
    "MOST": 4.0,
    "WEIGHT": 2.5,
    "TYPE": 1.0,
    "TOTAL": 100.0,
    "REFERENCE_RATE": 2.0,
    "REMAINING": 100.0,
    "RATE": 0.0,
    "SINCE": 3.0,
    "GIVEN": 0.0,
    "GIVEN_SINCE": 3.0,
    "ATTAINED": 0.0,
    "EXECUTED": 0.0,
    "MET": 3.0,
    "RESTARTS": 0.0,
}


def on(**gpus):
    return Allocation(tuple(Share(node, count, 0, 3.0 * count, 16.0 * count) for node, count in gpus.items()))


def yard_of(cluster, plans, *jobs, **rules):
    """A yard whose decisions are given: each takes the next plan."""
    turns = iter(plans)
    yard = Yard(cluster, lambda snapshot: Plan(next(turns)), Rules(**rules))
    for job in jobs:
        yard.handle(JobSubmitted(job.arrival_s, job))
    return yard


def two_jobs(**rules):
    """At 10 s `a` gets both GPUs of fast and slow; `b`, who came at 5 s, waits."""
    jobs = Job("a", 0.0, 2, 100.0), Job("b", 5.0, 1, 40.0)
    yard = yard_of(TWO, [{"a": on(f=1, s=1)}, {"a": None}, {}], *jobs, **rules)
    yard.handle(DecisionDue(10.0))
    return yard


def test_work_left_follows_the_rate():
    yard = two_jobs()
    assert yard.snapshot(10.0).remaining_samples().tolist() == [200.0, 40.0]
    assert yard.snapshot(30.0).remaining_samples().tolist() == [200.0 - 20 * 1.5, 40.0]
    assert yard.snapshot(30.0).remaining_s().tolist() == [170.0 / 2, 40.0]
    assert yard.snapshot(1e6).remaining_samples().tolist() == [0.0, 40.0]  # never below nothing


def test_no_work_is_done_while_a_job_starts():
    yard = two_jobs(start_s=6.0)
    assert yard.snapshot(12.0).remaining_samples().tolist() == [200.0, 40.0]
    assert yard.snapshot(18.0).remaining_samples().tolist() == [197.0, 40.0]


@pytest.mark.parametrize("now_s", [10.0, 12.0, 30.0, 143.0, 1e6])
def test_one_job_at_a_time_gives_the_same_numbers(now_s):
    snapshot = two_jobs(start_s=6.0).snapshot(now_s)
    records = snapshot.table.records
    assert [record.remaining_at(now_s) for record in records] == snapshot.remaining_samples().tolist()
    assert [record.remaining_s(now_s) for record in records] == snapshot.remaining_s().tolist()
    assert [record.attained_gpu_s(now_s) for record in records] == snapshot.attained_gpu_s().tolist()
    assert [record.executed_s(now_s) for record in records] == snapshot.executed_s().tolist()


def test_service_counts_from_the_plan_on():
    yard = two_jobs()
    assert yard.snapshot(30.0).attained_gpu_s().tolist() == [40.0, 0.0]
    assert yard.snapshot(30.0).executed_s().tolist() == [20.0, 0.0]
    yard.handle(DecisionDue(30.0))
    yard.handle(JobStopped(30.0, "a"))
    later = yard.snapshot(50.0)  # what it got stays, and grows no more
    assert later.attained_gpu_s().tolist() == [40.0, 0.0]
    assert later.executed_s().tolist() == [20.0, 0.0]
    assert later.remaining_samples().tolist() == [170.0, 40.0]


def test_contention_is_the_mean_number_of_jobs_met():
    yard = two_jobs()
    # `a` was alone for 5 of 20 seconds; `b` never was.
    assert yard.snapshot(20.0).contention().tolist() == [(5 * 1 + 15 * 2) / 20, 2.0]


def test_contention_of_a_job_that_came_just_now_is_the_number_there():
    yard = two_jobs()
    yard.handle(JobSubmitted(20.0, Job("c", 20.0, 1, 1.0)))
    assert yard.snapshot(20.0).contention()[2] == 3.0


@pytest.mark.parametrize(
    ("profile", "restart_s", "cost"),
    [(None, None, 0.0), (SERVED, None, 10.0), (None, 7.0, 7.0), (SERVED, 7.0, 7.0), (SERVED, 0.0, 0.0)],
)
def test_the_rules_restart_cost_wins_over_the_profiles(profile, restart_s, cost):
    snapshot = yard_of(TWO, [], restart_s=restart_s).snapshot(0.0)
    assert snapshot.restart_cost(Job("a", 0.0, 1, 1.0, profile=profile)) == cost


def test_how_long_a_job_will_run_counts_its_start_and_its_speed_there():
    yard = two_jobs(start_s=6.0, restart_s=9.0)
    snapshot, a, b = yard.snapshot(20.0), yard.records["a"], yard.records["b"]
    assert snapshot.runs_s(b, on(f=1)) == 6.0 + 40.0
    assert snapshot.runs_s(b, on(s=1)) == 6.0 + 80.0
    assert snapshot.runs_s(a, on(f=2)) == 9.0 + (200.0 - 4 * 1.5) / 2  # it has run for 4 s, and starts again
    b.pace = 0.5
    assert snapshot.runs_s(b, on(f=1)) == 6.0 + 80.0


def test_how_long_a_job_will_run_is_without_end_where_nobody_knows():
    yard = two_jobs()
    b = yard.records["b"]
    b.length = Length(Estimate(40.0, 40.0, 40.0, "kind"))
    assert yard.snapshot(20.0).runs_s(b, on(f=1)) == inf
    b.length = Length(Estimate(40.0, 40.0, 40.0, "told"))
    assert yard.snapshot(20.0).runs_s(b, on(f=1)) == 40.0


def test_sizes_seen_include_the_present_run():
    jobs = (Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4),)
    plans = [{"a": on(f=2)}, {"a": on(f=4)}, {}]
    yard = yard_of(TWO, plans, *jobs, start_s=3.0, restart_s=5.0)
    yard.handle(DecisionDue(0.0))
    assert yard.snapshot(3.0).seen(0) == {}
    assert yard.snapshot(5.0).seen(0) == {(2, 0): (2.0, 4.0)}
    yard.handle(DecisionDue(13.0))
    assert yard.snapshot(13.0).seen(0) == {(2, 0): (10.0, 20.0)}  # stopping: it does no work
    yard.handle(JobStopped(13.0, "a"))
    assert yard.snapshot(20.0).seen(0) == {(2, 0): (10.0, 20.0), (4, 0): (2.0, 8.0)}


def test_rows_of_waiting_jobs_are_in_order_of_submission():
    jobs = [Job(name, 0.0, 1, 10.0) for name in "abcd"]
    yard = yard_of(uniform_cluster(1, 4), [{"a": Allocation((Share("GPU-0", 1, 0, 3.0, 62.5),))}], *jobs)
    yard.handle(DecisionDue(0.0))
    assert yard.snapshot(0.0).waiting_rows().tolist() == [1, 2, 3]
    yard.handle(JobFinished(10.0, "a"))  # `d` moves to row 0 and stays last in the queue
    assert yard.snapshot(10.0).waiting_rows().tolist() == [1, 2, 0]


def test_a_fork_can_be_changed():
    yard = two_jobs()
    snapshot = yard.snapshot(20.0)
    snapshot.caches["x"] = 1
    version = snapshot.version
    twin = snapshot.fork()
    assert (twin.target, twin.caches) == (snapshot.target, {})
    b = twin.table.of["b"]
    assert list(twin.waiting) == [b]  # its queue holds its own records
    b.remaining = 1.0
    twin.table.changed.entries.append(b)
    assert twin.remaining_samples().tolist() == [185.0, 1.0]
    twin.table.remove(twin.table.of["a"])
    twin.waiting.remove(b)
    twin.free.add(0, 1, 3.0, 16.0)
    b.see().ran_at((1, 0), 1.0, 1.0)
    twin.caches["x"] = 2
    del twin.target["a"]
    assert ([r.job_id for r in snapshot.waiting], list(snapshot.target)) == (["b"], ["a"])
    assert (len(snapshot.table), snapshot.remaining_samples().tolist()) == (2, [185.0, 40.0])
    assert (snapshot.free.gpus, snapshot.caches, snapshot.version) == ([3, 3], {"x": 1}, version)
    assert snapshot.table.of["b"].seen is None
    assert (twin.now_s, twin.up_gpus, twin.met, twin.rules) == (20.0, 8, snapshot.met, snapshot.rules)


def test_workers_by_type_and_what_there_is():
    yard = two_jobs()
    assert held_by_type(yard.snapshot(20.0)).tolist() == [[1, 1], [0, 0]]
    assert up_by_type(yard.snapshot(20.0)).tolist() == [4, 4]  # held or free
    assert up_capacity(yard.snapshot(20.0)) == (8.0, 24.0, 128.0)
    yard.handle(NodeFailed(20.0, "s"))
    assert held_by_type(yard.snapshot(20.0)).tolist() == [[0, 0], [0, 0]]
    assert up_by_type(yard.snapshot(20.0)).tolist() == [4, 0]
    assert up_capacity(yard.snapshot(20.0)) == (4.0, 12.0, 64.0)
    yard.handle(NodeRepaired(30.0, "s"))
    assert up_by_type(yard.snapshot(30.0)).tolist() == [4, 4]


def test_parts_of_nothing_are_numbers_too():
    yard = two_jobs()
    for node in "fs":
        yard.handle(NodeFailed(20.0, node))
    assert up_capacity(yard.snapshot(20.0)) == (1.0, CPUS_GB, CPUS_GB)


def test_seconds_on_each_type_count_in_proportion_to_workers():
    job = Job("a", 0.0, 4, 1e4, min_gpus=2, max_gpus=4)
    yard = yard_of(TWO, [{"a": on(f=3, s=1)}, {"a": on(s=2)}], job, Job("b", 0.0, 1, 1.0))
    yard.handle(DecisionDue(0.0))
    snapshot = yard.snapshot(8.0)
    assert seconds_by_type(snapshot, held_by_type(snapshot)).tolist() == [[6.0, 2.0], [0.0, 0.0]]
    yard.handle(DecisionDue(8.0))
    yard.handle(JobStopped(8.0, "a"))
    snapshot = yard.snapshot(13.0)
    assert seconds_by_type(snapshot, held_by_type(snapshot)).tolist() == [[6.0, 7.0], [0.0, 0.0]]


def test_seconds_on_one_type_are_the_seconds_executed():
    allocation = Allocation((Share("GPU-0", 1, 0, 3.0, 62.5),))
    yard = yard_of(uniform_cluster(1, 4), [{"a": allocation}], Job("a", 0.0, 1, 9.0), Job("b", 0.0, 1, 9.0))
    yard.handle(DecisionDue(2.0))
    snapshot = yard.snapshot(7.0)
    assert seconds_by_type(snapshot, held_by_type(snapshot)).tolist() == [[5.0], [0.0]]


def test_a_new_row_says_what_the_job_asks_for():
    job = Job("a", 3.0, 2, 50.0, min_gpus=1, max_gpus=4, weight=2.5, gpu_type="slow")
    yard = yard_of(TWO, [], Job("first", 0.0, 1, 1.0), job)
    row = {name: float(yard.table.data[getattr(Column, name), 1]) for name in ROW}
    assert row == ROW


def test_a_job_without_a_type_accepts_any():
    yard = yard_of(TWO, [], Job("a", 0.0, 1, 1.0))
    assert yard.table.data[Column.TYPE, 0] == -1.0
    assert yard.table.data[Column.WEIGHT, 0] == 1.0


def test_a_snapshot_counts_what_is_placed_and_what_is_given_back():
    """Who keeps something between decisions sees from these numbers whether it still holds."""
    plans = [{"a": on(f=2)}, {}, {"b": on(s=1)}, {"a": None}]
    yard = yard_of(TWO, plans, Job("a", 0.0, 2, 100.0), Job("b", 0.0, 1, 40.0))

    def counts():
        snapshot = yard.snapshot(9.0)
        return snapshot.placed, snapshot.freed

    assert counts() == (0, 0)
    yard.handle(DecisionDue(0.0))
    assert counts() == (1, 0)
    yard.handle(DecisionDue(1.0))  # nothing changes
    assert counts() == (1, 0)
    yard.handle(DecisionDue(2.0))
    assert counts() == (2, 0)
    yard.handle(DecisionDue(3.0))
    assert counts() == (3, 1)
    yard.handle(JobStopped(4.0, "a"))  # it was given back when the plan was made
    assert counts() == (3, 1)
    yard.handle(JobFinished(5.0, "b"))
    assert counts() == (4, 2)
    for event in (NodeFailed(6.0, "f"), NodeRepaired(7.0, "f")):
        yard.handle(event)
    assert counts() == (8, 4)


def test_every_change_of_a_job_is_a_new_version():
    yard = two_jobs()
    seen = [yard.snapshot(10.0).version]
    for event in (
        JobSubmitted(11.0, Job("c", 11.0, 1, 1.0)),
        ProgressReported(12.0, "a", 30.0),
        DecisionDue(13.0),
        JobFinished(13.0, "a"),
    ):
        yard.handle(event)
        seen.append(yard.snapshot(13.0).version)
    assert seen == sorted(set(seen))
    yard.handle(DecisionDue(14.0))  # which changes nothing
    assert yard.snapshot(14.0).version == seen[-1]


def test_a_slow_job_is_seen_too_and_one_worker_counts_as_one():
    yard = yard_of(TWO, [{"a": on(s=1)}], Job("a", 0.0, 1, 100.0))
    yard.handle(DecisionDue(0.0))
    snapshot = yard.snapshot(8.0)
    assert snapshot.seen(0) == {(1, 0): (8.0, 4.0)}  # half a sample per second
    assert sorted(seconds_by_type(snapshot, held_by_type(snapshot))[0].tolist()) == [0.0, 8.0]
