"""The numbers behind the plots, by hand on a few steps and values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.report import series
from trainyard.report.series import Steps


def steps(times, levels, end_s):
    return Steps(np.array(times, float), np.array(levels, float), float(end_s))


HILL = steps([10, 20, 40], [1, 3, 0], 60)


def two_jobs():
    """Two jobs of 4 GPUs on 8: the second waits from 10 s to 30 s for a third of 8 GPUs."""
    jobs = [Job("a", 0.0, 8, 30.0), Job("b", 10.0, 4, 20.0)]
    return checked(uniform_cluster(1, 8), jobs)


def level_at(found, time_s):
    return float(found.level[np.searchsorted(found.time_s, time_s, side="right") - 1])


def test_levels_of_a_run_by_hand():
    result = two_jobs()
    moments = (5, 15, 35)
    queue, use, demand = (
        [level_at(of(result), at) for at in moments]
        for of in (series.queue_steps, series.utilization_steps, series.demand_steps)
    )
    assert queue == [0, 1, 0]
    assert use == [1, 1, 0.5]
    assert demand == [1, 2, 1]
    assert series.queue_steps(result).end_s == 50


def test_the_area_grows_by_level_times_width():
    edges, total = series.area(HILL)
    assert edges.tolist() == [10, 20, 40, 60]
    assert total.tolist() == [0, 10, 70, 70]


def test_the_mean_is_over_the_whole_time():
    assert series.step_mean(HILL) == 70 / 50
    assert series.step_mean(steps([5], [4], 5)) == 4  # no time at all: the level itself
    assert series.step_mean(steps([], [], 7)) == 0


def test_few_steps_stay_as_they_are():
    assert series.keep_extremes(HILL, 3) is HILL
    assert series.time_means(HILL, 3) is HILL


def test_first_last_lowest_and_highest_of_each_stretch_are_kept():
    times = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    levels = [5, 6, 9, 1, 4, 4, 2, 8, 3, 3]
    small = series.keep_extremes(steps(times, levels, 12), 8)  # two stretches: below and from 5 s on
    assert small.time_s.tolist() == [0, 2, 3, 4, 5, 6, 7, 10]
    assert small.level.tolist() == [5, 9, 1, 4, 4, 2, 8, 3]
    assert small.end_s == 12


def test_means_over_equal_stretches_by_hand():
    small = series.time_means(steps([0, 1, 2, 6], [4, 0, 2, 6], 10), 2)
    assert small.time_s.tolist() == [0, 5]
    assert small.level.tolist() == [(4 + 0 + 2 * 3) / 5, (2 + 6 * 4) / 5]
    assert small.end_s == 10


def test_steps_without_any_time_have_one_mean():
    small = series.time_means(steps([3, 3, 3], [1, 2, 6], 3), 2)
    assert small.time_s.tolist() == [3]
    assert small.level.tolist() == [6]  # the last one holds


def test_fractions_count_equal_values_once():
    points = series.cdf(np.array([2.0, 1.0, 2.0, np.nan]))
    assert points.x.tolist() == [1, 2]
    assert points.fraction.tolist() == [0.25, 0.75]


def test_fractions_may_be_of_more_than_there_is():
    assert series.cdf(np.array([1.0, 2.0]), total=8).fraction.tolist() == [0.125, 0.25]
    assert series.cdf(np.array([np.inf, np.nan])).x.size == 0


def test_many_values_keep_both_ends():
    values = np.arange(1.0, 10_001.0)
    points = series.cdf(values, 100)
    assert points.x[:3].tolist() == [1, 2, 3]
    assert points.x[-3:].tolist() == [9998, 9999, 10_000]
    assert points.x.size <= 100
    assert (points.fraction == points.x / 10_000).all()


def test_a_box_is_of_the_finite_values():
    box = series.spread(np.array([np.nan, 4.0, 1.0, 2.0, 3.0, 5.0]))
    assert (box.jobs, box.q1, box.median, box.q3, box.mean) == (5, 2, 3, 4, 3)
    assert (box.p5, box.p95) == pytest.approx((1.2, 4.8))


@pytest.mark.parametrize(
    ("gpus", "labels"),
    [
        ([1, 1], ["1 GPU"]),
        ([2, 3, 4], ["2 GPUs", "3-4 GPUs"]),
        ([8, 9], ["8 GPUs", "9 GPUs"]),
        ([16, 17, 32, 33, 64, 65, 900], ["16 GPUs", "17-32 GPUs", "33-64 GPUs", "65-900 GPUs"]),
    ],
)
def test_classes_of_gpus_begin_above_a_power_of_two(gpus, labels):
    assert [c.label for c in series.classes_by_gpus(np.array(gpus))] == labels


def test_jobs_are_quartered_by_length():
    ideal = np.array([100.0, 1.0, 3600.0, 10.0, np.nan])
    classes = series.classes_by_length(ideal)
    assert [c.label for c in classes] == ["1.00 s", "10.0 s", "1.67 min", "1.00 h"]
    assert [np.flatnonzero(c.members).tolist() for c in classes] == [[1], [3], [0], [2]]


def test_a_class_of_several_lengths_is_named_for_both_ends():
    classes = series.classes_by_length(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]))
    assert [c.label for c in classes] == [f"{a}.00 s to {a + 1}.00 s" for a in (1, 3, 5, 7)]


@pytest.mark.parametrize(
    ("above", "below", "expected"), [(6, 2, 3), (0, 2, 0), (6, 0, None), (6, -2, None), (6, np.inf, None)]
)
def test_ratios_have_a_positive_finite_denominator(above, below, expected):
    (found,) = series.ratio(np.array([float(above)]), np.array([float(below)]))
    assert np.isnan(found) if expected is None else found == expected


def test_the_busiest_window_by_hand():
    assert series.busiest_window(HILL, 20) == (20, 40)
    assert series.busiest_window(HILL, 30) == (10, 40)
    assert series.busiest_window(HILL, 50) == (10, 60)
    assert series.busiest_window(HILL, 99) == (10, 60)


def test_the_earliest_of_equally_busy_windows_is_taken():
    assert series.busiest_window(steps([0, 10, 20, 30], [2, 1, 2, 1], 40), 10) == (0, 10)
    assert series.busiest_window(steps([0, 10, 20, 30], [1, 2, 1, 2], 40), 10) == (10, 20)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12), st.integers(1, 6))
def test_means_are_areas_over_the_widths(pieces, buckets):
    """Counted on a grid of seconds, which whole numbers allow."""
    widths, levels = zip(*pieces, strict=True)
    seconds = np.repeat(levels, widths)
    times = np.cumsum((0, *widths))[:-1]
    found = series.time_means(steps(times, levels, sum(widths)), buckets)
    fine = np.repeat(seconds, buckets).reshape(buckets, -1).mean(axis=1)
    expected = fine if len(levels) > buckets else np.array(levels, float)
    assert found.level == pytest.approx(expected)
