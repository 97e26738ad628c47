"""Summaries by hand, percentiles against numpy, and the timeline."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.sim.failures import Failure
from trainyard.sim.result import _percentiles, jain

values = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30).map(np.array)
TIMINGS = {"decision_p50_ms", "decision_p99_ms", "wall_s"}


def three_jobs(policy="fifo", **options):
    """`a` runs from 0 to 10; `b` needs both GPUs and runs from 10 to 30; `c` comes at 4."""
    jobs = [Job("a", 0.0, 1, 10.0), Job("b", 2.0, 2, 20.0), Job("c", 4.0, 1, 4.0)]
    return checked(uniform_cluster(1, 2), jobs, policy, **options)


def test_the_summary_of_three_jobs_by_hand():
    summary = three_jobs().summary()
    jct = [10.0, 28.0, 30.0]
    # Jobs met: a 2 s alone, 2 s with one, 6 s with two; b with c all but 2 s with a only, 6 s with both, ...
    met = [(2 * 1 + 2 * 2 + 6 * 3) / 10, (2 * 2 + 6 * 3 + 20 * 2) / 28, (6 * 3 + 20 * 2 + 4 * 1) / 30]
    fair = [10 * max(1, met[0] / 2), 20 * met[1], 4 * max(1, met[2] / 2)]
    rho = [t / f for t, f in zip(jct, fair, strict=True)]
    expected = {
        "policy": "fifo",
        "jobs": 3,
        "completed": 3,
        "avg_jct_s": sum(jct) / 3,
        "median_jct_s": 28.0,
        "p95_jct_s": 28.0 + 0.9 * 2,
        "p99_jct_s": 28.0 + 0.98 * 2,
        "avg_queue_s": (0 + 8 + 26) / 3,
        "makespan_s": 34.0,
        "gpu_utilization": (10 + 40 + 4) / (2 * 34),
        "restarts": 0,
        "preemptions": 0,
        "decisions": 6,
        "finish_time_fairness_avg": sum(rho) / 3,
        "finish_time_fairness_max": max(rho),
        "jain_index": sum(rho) ** 2 / (3 * sum(r * r for r in rho)),
        "fallback_share": 0.0,
        "rescues": 0,
        "node_failures": 0,
        "runs_lost": 0,
    }
    ends = {"done": 3, "failed": 0, "cancelled": 0, "unfinished": 0}
    nobody = {"jobs": 3, "avg_jct_s": sum(jct) / 3, "avg_queue_s": (0 + 8 + 26) / 3, "gpu_s": 54.0}
    assert summary.pop("outcomes") == ends
    assert summary.pop("tenants") == {"": pytest.approx(nobody)}
    assert {k: v for k, v in summary.items() if k not in TIMINGS} == pytest.approx(expected)
    assert set(summary) == set(expected) | TIMINGS


def test_every_job_has_its_outcome():
    ends = ("", "failed", "Timeout", "killed", "completed", "")
    jobs = [Job(f"j{i}", float(i), 1, 10.0, status=status, model=f"m{i}") for i, status in enumerate(ends)]
    result = checked(uniform_cluster(1, 8), [*jobs, Job("late", 99.0, 1, 5.0)], until_s=14.5)
    o = result.outcomes
    assert o.outcome == ["done", "failed", "failed", "cancelled", "done", "unfinished", "unfinished"]
    assert o.model == ["m0", "m1", "m2", "m3", "m4", "m5", ""]
    summary = result.summary()
    assert summary["outcomes"] == {"done": 2, "failed": 2, "cancelled": 1, "unfinished": 2}
    assert summary["completed"] == 5  # all that ended, however they did: so are the averages
    assert summary["avg_jct_s"] == 10.0


def test_the_summary_counts_preemptions_and_restarts():
    jobs = [Job("long", 0.0, 2, 100.0), Job("short", 10.0, 2, 5.0)]
    summary = checked(uniform_cluster(1, 2), jobs, "srtf", restart_s=1.0).summary()
    assert (summary["restarts"], summary["preemptions"]) == (1, 1)
    assert summary["makespan_s"] == 106.0


def test_makespan_counts_from_the_first_arrival():
    result = checked(uniform_cluster(1, 2), [Job("a", 50.0, 1, 10.0)])
    assert result.summary()["makespan_s"] == 10.0
    assert result.summary()["gpu_utilization"] == 0.5


def test_the_timeline_of_three_jobs():
    timeline = three_jobs().timeline
    rows = zip(timeline.time_s, timeline.waiting, timeline.running, timeline.gpus, strict=True)
    assert [tuple(map(float, row)) for row in rows] == [
        (0.0, 0, 1, 1),
        (2.0, 1, 1, 1),
        (4.0, 2, 1, 1),
        (10.0, 1, 1, 2),
        (30.0, 0, 1, 1),
        (34.0, 0, 0, 0),
    ]


def test_the_timeline_between_rounds_says_what_is_there():
    timeline = checked(uniform_cluster(1, 2), [Job("a", 3.0, 1, 4.0)], round_s=10.0).timeline
    assert timeline.time_s.tolist() == [3.0, 10.0, 14.0]
    assert timeline.waiting.tolist() == [1, 0, 0]
    assert timeline.gpus.tolist() == [0, 1, 0]


def test_gpus_that_are_down_are_not_in_use():
    job = Job("a", 0.0, 1, 100.0)
    result = checked(uniform_cluster(2, 4), [job], failures=[Failure(10.0, "GPU-1", 20.0)])
    assert result.timeline.gpus.tolist() == [1, 1, 1, 0]


def test_segments_say_who_held_what():
    assert [tuple(s) for s in three_jobs().segments()] == [
        ("a", "GPU-0", 1, 0.0, 10.0, (0,)),
        ("b", "GPU-0", 2, 10.0, 30.0, (0, 1)),
        ("c", "GPU-0", 1, 30.0, 34.0, (0,)),
    ]


def test_what_is_not_over_is_told_so_far():
    result = three_jobs(until_s=20.0)
    o = result.outcomes
    assert o.gpu_s.tolist() == [10.0, 20.0, 0.0]
    assert o.start_s[:2].tolist() == [0.0, 10.0]
    assert np.isnan(o.finish_s).tolist() == [False, True, True]
    assert o.ideal_s.tolist() == [10.0, 20.0, 4.0]
    summary = result.summary()
    assert (summary["jobs"], summary["completed"], summary["avg_jct_s"]) == (3, 1, 10.0)
    assert summary["makespan_s"] == 10.0
    assert summary["avg_queue_s"] == 4.0  # of those that started
    assert summary["gpu_utilization"] == 30.0 / (2 * 20.0)
    assert [s.end_s for s in result.segments()] == [10.0, 20.0]


def test_jobs_that_come_after_the_end_are_not_there():
    result = checked(uniform_cluster(1, 2), [Job("a", 0.0, 1, 5.0), Job("late", 90.0, 1, 5.0)], until_s=50.0)
    o = result.outcomes
    assert [math.isnan(column[1]) for column in (o.start_s, o.finish_s, o.ideal_s, o.fair_s)] == [True] * 4
    assert (o.gpu_s[1], o.restarts[1], o.preemptions[1]) == (0.0, 0, 0)


def test_an_end_at_the_last_moment_counts():
    assert three_jobs(until_s=10.0).summary()["completed"] == 1
    assert three_jobs(until_s=9.999).summary()["completed"] == 0
    assert three_jobs(until_s=34.0).summary()["completed"] == 3


def test_a_run_in_which_nothing_ends_has_no_times():
    summary = three_jobs(until_s=5.0).summary()
    times = ("avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s")
    unknown = (*times, "finish_time_fairness_max", "jain_index")
    assert all(math.isnan(summary[key]) for key in unknown)
    assert summary["gpu_utilization"] == 5.0 / (2 * 5.0)


def test_outcomes_are_in_order_of_arrival():
    jobs = [Job("late", 9.0, 1, 1.0, tenant="x"), Job("early", 0.0, 2, 5.0, tenant="y")]
    o = checked(uniform_cluster(1, 2), jobs).outcomes
    assert (o.job_id, o.tenant, o.gpus.tolist()) == (["early", "late"], ["y", "x"], [2, 1])
    assert (o.arrival_s.tolist(), o.finish_s.tolist()) == ([0.0, 9.0], [5.0, 10.0])
    assert (o.jct_s.tolist(), o.queue_s.tolist()) == ([5.0, 1.0], [0.0, 0.0])


def test_decisions_left_to_another_stage_are_a_share_of_all():
    ran = three_jobs()
    left_to = {"drf": 1, "fixed": 2}
    summary = replace(ran, decision_ms=np.ones(12), left_to=left_to).summary()
    assert (summary["fallback_share"], summary["decisions"]) == (0.25, 12)
    assert replace(ran, decision_ms=np.zeros(0), left_to={}).summary()["fallback_share"] == 0.0


def test_node_failures_and_the_runs_lost_with_them_are_counted():
    """The second failure of a node that is down counts once; one without a job costs no run."""
    failures = [
        Failure(1.0, "GPU-0", 5.0),
        Failure(2.0, "GPU-0", 9.0),
        Failure(3.0, "GPU-1", 1.0),
        Failure(90.0, "GPU-1", 1.0),
    ]
    jobs = [Job("a", 0.0, 2, 10.0), Job("b", 0.0, 1, 10.0), Job("late", 100.0, 1, 1.0)]
    summary = checked(uniform_cluster(2, 2), jobs, failures=failures).summary()
    assert (summary["node_failures"], summary["runs_lost"]) == (3, 2)
    calm = checked(uniform_cluster(2, 2), jobs).summary()
    assert (calm["node_failures"], calm["runs_lost"]) == (0, 0)


def test_a_result_knows_the_cluster_as_it_was_given():
    window = Reservation("r", 1.0, 2.0, ("GPU-0",))
    cluster = replace(uniform_cluster(1, 2), reservations=(window,))
    assert checked(cluster, [Job("a", 0.0, 1, 5.0)]).cluster == cluster


@given(values, st.lists(st.sampled_from([0.0, 5.0, 50.0, 95.0, 99.0, 100.0]), min_size=1, max_size=4))
def test_percentiles_are_those_of_numpy(numbers, points):
    assert _percentiles(numbers, *points) == pytest.approx(np.percentile(numbers, points).tolist())


def test_no_values_have_no_percentiles():
    assert all(math.isnan(p) for p in _percentiles(np.zeros(0), 50, 99))
    assert len(_percentiles(np.zeros(0), 50, 99)) == 2


@given(st.lists(st.floats(0.01, 1e3), min_size=1, max_size=20), st.floats(0.1, 10.0))
def test_jains_index_is_between_one_over_n_and_one_and_knows_no_unit(numbers, unit):
    index = jain(np.array(numbers))
    assert 1 / len(numbers) - 1e-9 <= index <= 1 + 1e-9
    assert jain(unit * np.array(numbers)) == pytest.approx(index)
    mean, square = sum(numbers) / len(numbers), sum(x * x for x in numbers) / len(numbers)
    assert index == pytest.approx(mean * mean / square)


def test_a_result_can_be_pickled_and_copied():
    result = three_jobs("srtf")
    for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
        assert twin.summary() == result.summary()
        assert list(twin.story) == list(result.story)
        assert list(twin.segments()) == list(result.segments())
