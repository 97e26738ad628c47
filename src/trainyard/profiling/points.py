"""Which CPU counts to measure: few of the grid, and where they say most.

More CPUs never hurt, and each further one helps no more than the one before. Between two measured counts the
curve then lies above the straight line between them, and below both the higher speed and the line from zero
through the lower count. Where these bounds are close nothing needs to be measured: a flat stretch, or one in
proportion to the CPUs. Elsewhere the point with the widest bounds is next. What was expected there (the
middle of the bounds) against what is measured tells the error; where it is large, both halves are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainyard.profiling.measure import Point

TOLERANCE = 0.1


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured points in order of CPUs; the error at the last one that could be foretold, if any."""

    points: tuple[Point, ...]
    grid: int
    held_out_error: float | None
    widest: float  # half the widest bounds of a count that was not measured


class _Stretch(NamedTuple):
    """Two measured points, and the counts between them."""

    low: Point
    high: Point
    inner: Sequence[float]

    def bounds(self, cpus: float) -> tuple[float, float]:
        low, high = self.low, self.high
        at = (cpus - low.cpus) / (high.cpus - low.cpus)
        floor = low.samples_per_s + at * (high.samples_per_s - low.samples_per_s)
        best = max(low.samples_per_s, high.samples_per_s)
        return floor, max(floor, min(best, low.samples_per_s * cpus / low.cpus))

    def expected(self, cpus: float) -> float:
        return sum(self.bounds(cpus)) / 2

    def gap(self, cpus: float) -> float:
        floor, ceiling = self.bounds(cpus)
        return (ceiling - floor) / (ceiling + floor)

    def widest(self) -> float:
        return max(map(self.gap, self.inner), default=0.0)

    def next(self) -> float:
        middle = self.inner[len(self.inner) // 2]
        return max((middle, *self.inner), key=lambda cpus: round(self.gap(cpus), 6))

    def halves(self, point: Point) -> tuple[_Stretch, _Stretch]:
        below = [cpus for cpus in self.inner if cpus < point.cpus]
        above = [cpus for cpus in self.inner if cpus > point.cpus]
        return _Stretch(self.low, point, below), _Stretch(point, self.high, above)


def trace_curve(
    grid: Sequence[float], measure: Callable[[float], Point], tolerance: float = TOLERANCE
) -> Curve:
    """Measure the ends of the grid, and in between what cannot be told from its neighbours."""
    if len(grid) == 1:
        return Curve((measure(grid[0]),), 1, None, 0.0)
    high, low = measure(grid[-1]), measure(grid[0])
    points, error, known = [low, high], None, 0.0
    doubtful = [_Stretch(low, high, grid[1:-1])]  # at least one point is always checked
    while doubtful:
        stretch = doubtful.pop()
        if not stretch.inner:
            continue
        point = measure(stretch.next())
        error = abs(stretch.expected(point.cpus) / point.samples_per_s - 1)
        points.append(point)
        for half in stretch.halves(point):
            if error > tolerance or half.widest() > tolerance / 2:
                doubtful.append(half)
            else:
                known = max(known, half.widest())
    return Curve(tuple(sorted(points, key=lambda point: point.cpus)), len(grid), error, known)
