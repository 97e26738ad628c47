"""Which CPU counts are measured, and what is said of the others."""

from __future__ import annotations

import pytest

from trainyard.profiling.points import TOGETHER, trace_curve
from trainyard.profiling.turns import Point

GRID = [float(cpus) for cpus in range(1, 25)]


class Compared:
    """Speeds of counts, all of them known anew after each comparison."""

    def __init__(self, speed):
        self.speed, self.asked, self.known = speed, [], set()

    def __call__(self, counts):
        self.asked.append(list(counts))
        self.known.update(counts)
        return {cpus: Point(cpus, self.speed(cpus), 9, 0.0) for cpus in self.known}


def traced(speed, grid=GRID):
    return trace_curve(grid, Compared(speed))


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


def test_a_count_is_compared_with_the_ends_of_its_stretch():
    compare = Compared(lambda cpus: min(cpus, 5.0))
    curve = trace_curve(GRID, compare)
    assert compare.asked[0] == [1, 24]
    assert compare.asked[1] == [1, 5, 24]
    assert all(len(counts) <= TOGETHER for counts in compare.asked)
    for i, (low, new, high) in enumerate(compare.asked[1:], 1):
        before = {cpus for counts in compare.asked[:i] for cpus in counts}
        assert low < new < high
        assert new not in before >= {low, high}
    assert {cpus for counts in compare.asked for cpus in counts} == set(measured(curve))


def test_three_counts_are_compared_at_once():
    compare = Compared(lambda cpus: 100 * cpus)
    curve = trace_curve([1, 1.5, 2], compare)
    assert compare.asked == [[1, 1.5, 2]]
    assert curve.held_out_error == pytest.approx(0)


def test_all_points_are_of_the_last_comparison():
    compare = Compared(lambda cpus: cpus * len(compare.asked))
    curve = trace_curve(GRID, compare)
    assert [point.samples_per_s for point in curve.points] == [2, 26, 48]
    assert curve.held_out_error == pytest.approx(0)


@pytest.mark.parametrize("grid", [[2.0], [1.0, 2.0]])
def test_nothing_in_between(grid):
    curve = traced(lambda cpus: cpus, grid)
    assert measured(curve) == grid
    assert curve.held_out_error is None
