"""Which CPU counts are measured, and what is said of the others."""

from __future__ import annotations

import pytest

from trainyard.profiling.measure import Point
from trainyard.profiling.points import trace_curve

GRID = [float(cpus) for cpus in range(1, 25)]


def traced(speed, grid=GRID):
    return trace_curve(grid, lambda cpus: Point(cpus, speed(cpus), 9, 0.0))


def measured(curve):
    return [point.cpus for point in curve.points]


def interpolated(curve, cpus):
    low = max((p for p in curve.points if p.cpus <= cpus), key=lambda p: p.cpus)
    high = min((p for p in curve.points if p.cpus >= cpus), key=lambda p: p.cpus)
    at = (cpus - low.cpus) / (high.cpus - low.cpus) if high.cpus > low.cpus else 0
    return low.samples_per_s + at * (high.samples_per_s - low.samples_per_s)


@pytest.mark.parametrize("speed", [lambda cpus: 100.0, lambda cpus: 100.0 * cpus], ids=["flat", "linear"])
def test_what_is_plain_needs_three_points(speed):
    curve = traced(speed)
    assert measured(curve) == [1, 13, 24]
    assert curve.held_out_error == pytest.approx(0)
    assert curve.widest == pytest.approx(0)


@pytest.mark.parametrize("knee", [2, 3, 5.5, 8, 12, 20])
def test_a_knee_is_found(knee):
    def speed(cpus):
        return 100.0 * min(cpus, knee)

    curve = traced(speed)
    assert len(curve.points) <= 5
    assert curve.grid == 24
    assert all(interpolated(curve, cpus) == pytest.approx(speed(cpus), rel=0.12) for cpus in GRID)


def test_a_smooth_curve_is_told_within_the_bounds_it_reports():
    def speed(cpus):
        return 1 / (0.001 + 0.01 / cpus)

    curve = traced(speed)
    assert len(curve.points) < 12
    worst = max(abs(interpolated(curve, cpus) / speed(cpus) - 1) for cpus in GRID)
    assert worst <= 2 * max(curve.widest, curve.held_out_error)


def test_what_cannot_be_foretold_is_measured():
    curve = traced(lambda cpus: 100.0 if cpus in (7, 8) else 50.0 + 7 * (cpus % 3), [1, 3, 5, 7, 8, 9])
    assert measured(curve) == [1, 3, 5, 7, 8, 9]
    assert curve.held_out_error > 0.1


@pytest.mark.parametrize("wrong", [1, 1.5, 2])
def test_what_contradicts_is_measured_again(wrong):
    calls = []

    def measure(cpus):
        calls.append(cpus)
        slow = 0.7 if cpus == wrong and calls.count(cpus) == 1 else 1.0
        return Point(cpus, 100.0 * cpus * slow, 9, 0.0)

    curve = trace_curve([1, 1.5, 2], measure)
    assert calls == [2, 1, 1.5, 1, 1.5, 2]
    assert curve.again == (1, 1.5, 2)
    assert [point.samples_per_s for point in curve.points] == [100, 150, 200]
    assert curve.held_out_error == pytest.approx(0)


def test_a_knee_is_no_contradiction():
    assert all(traced(lambda cpus, knee=knee: min(cpus, knee)).again == () for knee in GRID)


@pytest.mark.parametrize("grid", [[2.0], [1.0, 2.0]])
def test_nothing_in_between(grid):
    curve = traced(lambda cpus: cpus, grid)
    assert measured(curve) == grid
    assert curve.held_out_error is None
