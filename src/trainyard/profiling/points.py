"""Which CPU counts to measure: few of the grid, and where they say most.

More CPUs never hurt, and each further one helps no more than the one before. Between two measured counts the
curve then lies above the straight line between them, and below both the higher speed and the line from zero
through the lower count. Where these bounds are close nothing needs to be measured: a flat stretch, or one in
proportion to the CPUs. Elsewhere the point with the widest bounds is next. What was expected there (the
middle of the bounds) against what is measured tells the error; where it is large, both halves are looked at.

A count is measured together with the ends of its stretch, since machines drift (`turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainyard.profiling.turns import Point

TOLERANCE = 0.1
TOGETHER = 3  # counts compared at a time, at most


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


def trace_curve(
    grid: Sequence[float],
    compare: Callable[[Sequence[float]], Mapping[float, Point]],
    tolerance: float = TOLERANCE,
) -> Curve:
    """Compare the ends of the grid, and then counts in between that cannot be told from their neighbours."""
    found = compare(grid if len(grid) <= TOGETHER else [grid[0], grid[-1]])

    def stretch(low: float, high: float) -> _Stretch:
        return _Stretch(found[low], found[high], [cpus for cpus in grid if low < cpus < high])

    error, known = None, 0.0
    doubtful = [(grid[0], grid[-1])]  # at least one point is always checked
    while doubtful:
        low, high = doubtful.pop()
        if not stretch(low, high).inner:
            continue
        middle = stretch(low, high).next()
        if middle not in found:
            found = compare([low, middle, high])
        error = abs(stretch(low, high).expected(middle) / found[middle].samples_per_s - 1)
        for half in ((low, middle), (middle, high)):
            gap = stretch(*half).widest()
            if error > tolerance or gap > tolerance / 2:
                doubtful.append(half)
            else:
                known = max(known, gap)
    return Curve(tuple(found[cpus] for cpus in sorted(found)), len(grid), error, known)
