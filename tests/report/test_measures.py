"""Measures of a summary: which value is the best, and what a missing one is."""

from __future__ import annotations

import math

import pytest

from trainyard.report.measures import MEASURES, Measure, number, winners, with_speedup
from trainyard.report.units import short

LOW = Measure("x", "x", "less is better", short)
HIGH = Measure("x", "x", "more is better", short, "high")
NEITHER = Measure("x", "x", "no value is better", short, "")


def rows(*values):
    return [{"x": value} for value in values]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [({"x": 3}, 3.0), ({"x": 2.5}, 2.5), ({"x": "3"}, None), ({"x": None}, None), ({}, None)],
)
def test_only_numbers_are_numbers(summary, expected):
    found = number(summary, "x")
    assert isinstance(found, float)
    assert math.isnan(found) if expected is None else found == expected


@pytest.mark.parametrize(
    ("measure", "values", "expected"),
    [
        (LOW, (3, 1, 2), {1}),
        (HIGH, (3, 1, 2), {0}),
        (NEITHER, (3, 1, 2), set()),
        (LOW, (1, 1, 2), {0, 1}),
        (LOW, (1, 1 + 1e-12, 2), {0, 1}),
        (LOW, (1, 1 + 1e-6, 2), {0}),
        (LOW, (1, 1, 1), set()),
        (LOW, (7,), set()),
        (LOW, (math.nan, 2), {1}),
        (HIGH, (math.inf, 2), {1}),
        (LOW, (math.nan, math.nan), set()),
        (LOW, (), set()),
        (LOW, (-1, 0), {0}),
    ],
)
def test_the_best_values_win_unless_all_are_alike(measure, values, expected):
    assert winners(rows(*values), measure) == expected


def test_speedup_is_over_the_first():
    jct = [8.0, 4.0, 16.0, 0.0, math.nan]
    found = [row["speedup"] for row in with_speedup([{"avg_jct_s": value} for value in jct])]
    assert found[:3] == [1.0, 2.0, 0.5]
    assert all(math.isnan(value) for value in found[3:])


def test_two_runs_without_delay_are_equally_fast():
    assert [row["speedup"] for row in with_speedup([{"avg_jct_s": 0.0}, {"avg_jct_s": 0.0}])] == [1.0, 1.0]


def test_speedup_leaves_the_summaries_as_they_are():
    summaries = [{"policy": "fifo", "avg_jct_s": 2.0}]
    assert with_speedup(summaries) == [{"policy": "fifo", "avg_jct_s": 2.0, "speedup": 1.0}]
    assert summaries == [{"policy": "fifo", "avg_jct_s": 2.0}]
    assert with_speedup([]) == []


def test_more_is_better_of_few_measures_only():
    best = {end: {m.key for m in MEASURES.values() if m.best == end} for end in ("high", "")}
    assert best["high"] == {"speedup", "gpu_utilization", "jain_index"}
    assert best[""] == {"fallback_share", "rescues", "node_failures", "runs_lost", "wall_s"}


def test_a_measure_is_shown_in_its_unit():
    shown = {
        key: MEASURES[key].show(0.5) for key in ("avg_jct_s", "speedup", "gpu_utilization", "jain_index")
    }
    assert shown == {
        "avg_jct_s": "500 ms",
        "speedup": "0.50x",
        "gpu_utilization": "50.0%",
        "jain_index": "0.50",
    }
    assert MEASURES["restarts"].show(1234) == "1,234"
