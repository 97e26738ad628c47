"""The numbers behind the plots: step series, distributions and classes, made small enough to draw.

A run of 100,000 jobs changes its queue several hundred thousand times; a screen has some thousand columns of
pixels. What is left out here cannot be seen: `keep_extremes` keeps the first, last, lowest and highest level
of each stretch of time, so the drawn envelope is exact; `time_means` keeps the area under the curve, so
averages read off the plot are exact; `cdf` keeps exact points of the distribution, denser at both ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import FINE_PART, SECONDS
from trainyard.report.units import duration
from trainyard.sim.result import Result

MAX_POINTS = 2000


class Steps(NamedTuple):
    """A level that changes at moments: level[i] holds from time_s[i] to time_s[i + 1], the last to end_s."""

    time_s: Floats
    level: Floats
    end_s: float


class Cdf(NamedTuple):
    """Points of a distribution: the fraction of all values that are at most x."""

    x: Floats
    fraction: Floats


class Spread(NamedTuple):
    """What a box of a box plot shows."""

    jobs: int
    p5: float
    q1: float
    median: float
    q3: float
    p95: float
    mean: float


class SizeClass(NamedTuple):
    """A named group of jobs."""

    label: str
    members: Mask


def queue_steps(result: Result) -> Steps:
    """Return the number of waiting jobs over time."""
    return _steps(result, result.timeline.waiting.astype(np.float64))


def utilization_steps(result: Result) -> Steps:
    """Return the fraction of the cluster's GPUs that is held over time."""
    return _steps(result, result.timeline.gpus / max(result.cluster.gpus, 1))


def demand_steps(result: Result) -> Steps:
    """Return the number of jobs in the system over time."""
    return _steps(result, (result.timeline.waiting + result.timeline.running).astype(np.float64))


def _steps(result: Result, level: Floats) -> Steps:
    time_s = result.timeline.time_s
    return Steps(time_s, level, max(result.end_s, float(time_s[-1])) if time_s.size else result.end_s)


def area(steps: Steps) -> tuple[Floats, Floats]:
    """Return the edges of the steps and the area under the curve up to each."""
    edges = np.append(steps.time_s, steps.end_s)
    return edges, np.concatenate(([0.0], np.cumsum(steps.level * np.diff(edges))))


def step_mean(steps: Steps) -> float:
    """Return the average level over time."""
    edges, total = area(steps)
    span = float(edges[-1] - edges[0])
    return float(total[-1]) / span if span > 0 else float(steps.level[-1]) if steps.level.size else 0.0


def keep_extremes(steps: Steps, limit: int = MAX_POINTS) -> Steps:
    """Keep the first, last, lowest and highest step of each of limit / 4 stretches of time."""
    time_s, level, end_s = steps
    if time_s.size <= limit:
        return steps
    stretches = max(limit // 4, 1)
    span = max(float(time_s[-1] - time_s[0]), SECONDS)
    stretch = np.minimum((time_s - time_s[0]) / span * stretches, stretches - 1).astype(np.int64)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    last = np.append(first[1:], time_s.size) - 1
    by_level = np.lexsort((level, stretch))
    keep = np.unique(np.concatenate((first, last, by_level[first], by_level[last])))
    return Steps(time_s[keep], level[keep], end_s)


def time_means(steps: Steps, buckets: int) -> Steps:
    """Replace the steps by averages over equal stretches of time: the area under the curve stays the same."""
    if steps.time_s.size <= buckets:
        return steps
    edges, total = area(steps)
    grid = np.linspace(edges[0], edges[-1], buckets + 1)
    width = np.diff(grid)
    if not np.all(width > 0):
        return steps._replace(time_s=edges[:1], level=np.array([step_mean(steps)]))
    return Steps(grid[:-1], np.diff(np.interp(grid, edges, total)) / width, steps.end_s)


def cdf(values: Floats, limit: int = MAX_POINTS, total: int | None = None) -> Cdf:
    """Return the distribution of the finite values, as fractions of `total` (all values unless given)."""
    ordered = np.sort(values[np.isfinite(values)])
    n = ordered.size
    whole = values.size if total is None else total
    if not n:
        return Cdf(np.empty(0), np.empty(0))
    ranks = np.arange(n)
    if n > limit:
        even = np.linspace(0, n - 1, limit // 2)
        near_ends = np.geomspace(1, n, limit // 4) - 1
        ranks = np.unique(np.rint(np.concatenate((even, near_ends, n - 1 - near_ends))).astype(np.int64))
    x = np.unique(ordered[ranks])
    return Cdf(x, np.searchsorted(ordered, x, side="right") / max(whole, 1))


def spread(values: Floats) -> Spread | None:
    """Return quartiles, 5th and 95th percentile and mean of the finite values; None when there are none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    p5, q1, median, q3, p95 = (float(v) for v in np.percentile(finite, (5, 25, 50, 75, 95)))
    return Spread(int(finite.size), p5, q1, median, q3, p95, float(finite.mean()))


def classes_by_gpus(gpus: Ints) -> list[SizeClass]:
    """Group jobs by requested GPUs: 1, 2, 3-4, 5-8, ... 33-64, more; each named for what is in it."""
    group = np.searchsorted((1, 2, 4, 8, 16, 32, 64), gpus)
    classes = []
    for g in np.unique(group):
        members = group == g
        low, high = int(gpus[members].min()), int(gpus[members].max())
        size = f"{low}" if low == high else f"{low}-{high}"
        classes.append(SizeClass(f"{size} GPU" if high == 1 else f"{size} GPUs", members))
    return classes


def classes_by_length(ideal_s: Floats) -> list[SizeClass]:
    """Group jobs into the four quarters of their run time alone, each named for its bounds."""
    finite = ideal_s[np.isfinite(ideal_s)]
    if not finite.size:
        return []
    edges = np.unique(np.percentile(finite, (25, 50, 75)))
    group = np.where(np.isfinite(ideal_s), np.searchsorted(edges, ideal_s), -1)
    classes = []
    for g in np.unique(group[group >= 0]):
        members: Mask = group == g
        low, high = duration(float(ideal_s[members].min())), duration(float(ideal_s[members].max()))
        classes.append(SizeClass(low if low == high else f"{low} to {high}", members))
    return classes


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide where that means something; NaN elsewhere."""
    out = np.full(numerator.shape, np.nan)
    good = np.isfinite(numerator) & np.isfinite(denominator) & (denominator > 0)
    np.divide(numerator, denominator, out=out, where=good)
    return out


def busiest_window(steps: Steps, length_s: float) -> tuple[float, float]:
    """Return the stretch of the given length with the highest average level; the earliest of several."""
    edges, total = area(steps)
    low, high = float(edges[0]), float(edges[-1])
    if length_s >= high - low:
        return low, high
    # The best window begins or ends where the level changes.
    starts = np.unique(np.clip(np.concatenate((edges, edges - length_s)), low, high - length_s))
    held = np.interp(starts + length_s, edges, total) - np.interp(starts, edges, total)
    best = float(starts[int(np.argmax(held >= held.max() * (1 - FINE_PART)))])
    return best, best + length_s
