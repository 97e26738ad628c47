"""Statistics of a few jobs, worked out by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.model.job import Job
from trainyard.model.zoo import zoo_profile
from trainyard.trace import stats
from trainyard.trace.stats import busy_window, class_of, hour_profile, run_times, trace_stats

HOUR_S, DAY_S = 3600.0, 86_400.0


def job(at, gpus=1, run_s=100.0, **more):
    return Job(f"j{at}-{gpus}-{run_s}", float(at), gpus, float(run_s), **more)


def several(day, count, step_s=60.0):
    """Jobs of one day, a minute apart."""
    return [day * DAY_S + i * step_s for i in range(count)]


def test_three_jobs():
    jobs = [
        job(3600, 8, 100, tenant="x", status="Pass"),
        job(0, 1, 400, tenant="y", status="Pass"),
        job(1800, 1, 200),
    ]
    found = trace_stats(jobs)
    assert (found.jobs, found.span_s, found.rate_per_h) == (3, 3600, 3)
    assert (found.mean_gpus, found.max_gpus) == (pytest.approx(10 / 3), 8)
    assert (found.mean_s, found.max_s) == (pytest.approx(700 / 3), 400)
    assert found.percentiles_s[50] == 200
    assert found.percentiles_s[25] == 150
    assert found.load_gpus == pytest.approx(1400 / 3600)
    assert list(found.gpu_counts.items()) == [(1, pytest.approx(2 / 3)), (8, pytest.approx(1 / 3))]
    assert found.statuses == {"Pass": pytest.approx(2 / 3)}
    assert found.tenants == {"x": pytest.approx(1 / 3), "y": pytest.approx(1 / 3)}
    assert found.estimated == 0
    assert found.suggested_gpus == 8


def test_classes_of_three_jobs():
    found = trace_stats([job(0, 1, 100), job(10, 1, 300), job(20, 4, 150)])
    assert [c.label for c in found.classes] == ["1", "2-4"]
    one, four = found.classes
    assert (one.job_share, one.gpu_time_share, one.median_s) == (pytest.approx(2 / 3), 0.4, 200)
    assert (four.job_share, four.gpu_time_share, four.median_s) == (pytest.approx(1 / 3), 0.6, 150)


@pytest.mark.parametrize(
    ("gpus", "label"),
    [
        (1, "1"),
        (2, "2-4"),
        (4, "2-4"),
        (5, "5-8"),
        (8, "5-8"),
        (9, "9-32"),
        (32, "9-32"),
        (33, "33+"),
        (999, "33+"),
    ],
)
def test_bounds_of_the_classes(gpus, label):
    ((found, inside),) = class_of(np.array([gpus]))
    assert found == label
    assert inside.tolist() == [True]


@given(st.lists(st.integers(1, 600), min_size=1, max_size=50))
def test_every_job_is_in_one_class(gpus):
    inside = [members for _, members in class_of(np.array(gpus))]
    assert (np.sum(inside, axis=0) == 1).all()


def test_jobs_at_one_time_have_no_rate():
    found = trace_stats([job(5, 6), job(5, 5)])
    assert (found.rate_per_h, found.load_gpus, found.arrivals) == (None, None, None)
    assert found.suggested_gpus == 16  # all 11 at once, on whole nodes


def test_the_suggestion_is_nine_tenths_busy():
    """18 jobs of 8 GPUs and half an hour in 5 h: a load of 14.4 GPUs, so 16 of them and two nodes."""
    jobs = [job(i * HOUR_S * 5 / 17, 8, 1800) for i in range(18)]
    found = trace_stats(jobs)
    assert found.arrivals.load_gpus == pytest.approx(18 * 8 * 1800 / 18_001)
    assert found.suggested_gpus == 16
    assert trace_stats([*jobs, job(10, 40, 1)]).suggested_gpus == 40  # the largest job must fit


def test_only_the_most_frequent_are_named():
    jobs = [job(i, gpus) for gpus in range(1, 13) for i in range(gpus)]
    counts = trace_stats(jobs).gpu_counts
    assert list(counts) == list(range(12, 2, -1))
    assert counts[12] == 12 / 78


def test_short_traces_are_busy_from_end_to_end():
    at = np.array([50.0, 100.0, 2 * DAY_S - 1])
    assert busy_window(at) == (50, 2 * DAY_S)


def test_quiet_days_at_both_ends_are_left_out():
    at = np.array([10.0, *several(1, 40), *several(2, 40), *several(3, 40), 4 * DAY_S + 7])
    assert busy_window(at) == (DAY_S, 4 * DAY_S)  # one job is less than a tenth of the mean, 122 / 5


def test_a_busy_window_ends_with_its_last_job():
    at = np.array([500.0, *several(0, 20, 60)[10:], *several(1, 20), *several(2, 20)])
    begin, end = busy_window(np.sort(at))
    assert (begin, end) == (500, 2 * DAY_S + 19 * 60 + 1)


def test_a_quiet_day_in_the_middle_stays():
    at = np.array([*several(0, 30), 1.5 * DAY_S, *several(2, 30)])
    assert busy_window(at) == (0, 2 * DAY_S + 29 * 60 + 1)


def test_what_is_outside_the_busy_days_does_not_count():
    times = [10.0, *several(1, 40), *several(2, 40), *several(3, 40), 4 * DAY_S]
    found = trace_stats([job(at) for at in times]).arrivals
    assert (found.from_day, found.days, found.jobs) == (1, 3, 120)
    assert found.rate_per_h == 120 / 72
    assert found.load_gpus == pytest.approx(120 * 100 / (3 * DAY_S))


def test_hours_of_the_day_count_from_the_origin():
    at = np.array([0.0, 3599.0, 3600.0, 25 * HOUR_S])
    plain, shifted = hour_profile(at, 0.0, 48.0), hour_profile(at, 23 * HOUR_S, 48.0)
    assert (plain[0], plain[1], plain.sum()) == (1, 1, 2)  # two days, so half of the counts
    assert (shifted[23], shifted[0], shifted.sum()) == (1, 1, 2)


def test_less_than_a_day_counts_as_one():
    assert hour_profile(np.array([0.0, 1.0]), 0.0, 2.0)[0] == 2


def test_dispersion_is_variance_over_mean():
    at = np.array([1.0, 2.0, 3.0, 650.0, 1250.0, 1850.0])
    assert stats._dispersion(at, 600.0, 2400.0) == pytest.approx(0.75 / 1.5)  # counts 3, 1, 1, 1
    assert stats._dispersion(at, 600.0, 2399.0) == pytest.approx(np.var([3, 1, 1]) / np.mean([3, 1, 1]))
    assert math.isnan(stats._dispersion(at, 800.0, 2399.0))  # two windows are too few
    assert stats._dispersion(at, 800.0, 2400.0) == pytest.approx(np.var([4, 1, 1]) / 2)


def test_even_gaps_do_not_vary():
    assert trace_stats([job(i * 60) for i in range(10)]).arrivals.gap_cv == 0
    uneven = trace_stats([job(at) for at in (0, 10, 40)]).arrivals
    assert uneven.gap_cv == pytest.approx(0.5)  # gaps of 10 and 30
    assert math.isnan(stats._variation(np.zeros(3)))


def test_weekends_need_two_weeks_and_a_known_day():
    times = np.array([day * DAY_S for day in range(14) for _ in range(1 if day % 7 >= 5 else 4)])
    assert stats._weekend(times, 0.0, 14 * DAY_S) == pytest.approx(0.25)
    assert stats._weekend(times, 0.0, 14 * DAY_S - 1) is None
    assert stats._weekend(times, None, 14 * DAY_S) is None
    from_saturday = stats._weekend(times, 5 * DAY_S, 14 * DAY_S)  # its quiet days are Thursday and Friday
    assert from_saturday == pytest.approx(4 / (14 / 5))


def test_peak_and_trough_are_smoothed_with_their_neighbours():
    """Every hour has 2 jobs, noon 6: smoothed 2, 3, 4, 3, 2."""
    times = [hour * HOUR_S + i for hour in range(24) for i in range(6 if hour == 12 else 2)]
    found = trace_stats([job(at) for at in times]).arrivals
    assert found.by_hour_of_day[12] == 6
    assert found.peak_to_trough == pytest.approx(2)


def test_an_empty_part_of_the_day_has_no_trough():
    assert trace_stats([job(0), job(60)]).arrivals.peak_to_trough == math.inf


def test_run_times_are_estimated_where_only_samples_are_known():
    sampled = Job("s", 5.0, 2, samples=1e6, model="resnet50", profile=zoo_profile("resnet50"))
    found = run_times([job(0, 1, 70), sampled])
    assert found[0] == pytest.approx(70)
    assert found[1] > 60
    assert trace_stats([job(0, 1, 70), sampled]).estimated == 1


def test_statistics_are_plain_data():
    text = json.dumps(trace_stats([job(0), job(100)]).as_dict())
    assert json.loads(text)["jobs"] == 2


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 64), st.integers(1, 10**5)), min_size=2, max_size=40
    )
)
def test_order_in_the_file_makes_no_difference(rows):
    jobs = [Job(str(i), float(at), gpus, float(run_s)) for i, (at, gpus, run_s) in enumerate(rows)]
    one, other = trace_stats(jobs), trace_stats(jobs[::-1])
    assert one.percentiles_s == other.percentiles_s
    assert one.span_s == other.span_s == max(r[0] for r in rows) - min(r[0] for r in rows)
    assert one.suggested_gpus == other.suggested_gpus
    assert sum(one.gpu_counts.values()) <= 1 + 1e-9


def test_a_gap_of_thirty_thousand_years_needs_no_memory():
    """A window every ten minutes of it would be 12 GiB."""
    found = trace_stats([job(0), job(60), job(1e12)])
    assert found.span_s == 1e12
    assert found.arrivals is not None
    assert found.arrivals.dispersion["10min"] == pytest.approx(2, rel=1e-6)  # one whole window has two jobs
