"""Where each of the ratios in SMD's inner problem is least, and how large it can be.

With two variables and these ratios that is at a corner that can be written down: the paper solves a linear
program for every one of them, this works out many jobs and bounds at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Mask
from trainyard.model.tolerance import FINE_PART
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    fields_of,
    least_quotient,
    most_servers,
    most_workers,
    quotient,
)

# The ratios: a w + b p (or a w and b p one by one), c w/p, d p/w, e/w and f/p.
LINE, SECOND_LINE, WORKERS_PER_SERVER, SERVERS_PER_WORKER, PER_WORKER, PER_SERVER = range(6)
LINES = (LINE, SECOND_LINE)
MIRRORED = {
    WORKERS_PER_SERVER: SERVERS_PER_WORKER,
    SERVERS_PER_WORKER: WORKERS_PER_SERVER,
    PER_SERVER: PER_WORKER,
}


class Region(NamedTuple):
    """w >= least_w, p >= least_p, p >= p_per_w w, w >= w_per_p p, on_w w + on_p p <= limit; for n points."""

    least_w: Floats
    least_p: Floats
    p_per_w: Floats
    w_per_p: Floats
    on_w: Floats  # (rows, n), as the next two
    on_p: Floats
    limit: Floats

    def mirrored(self) -> Region:
        """Exchange workers and servers."""
        return Region(
            self.least_p, self.least_w, self.w_per_p, self.p_per_w, self.on_p, self.on_w, self.limit
        )

    def holds(self, w: Floats, p: Floats) -> Mask:
        """Whether points are inside."""
        rows = (self.on_w * w + self.on_p * p <= self.limit * (1 + FINE_PART)).all(axis=0)
        cone = (p >= self.p_per_w * w * (1 - FINE_PART)) & (w >= self.w_per_p * p * (1 - FINE_PART))
        inside: Mask = rows & cone & (w >= self.least_w) & (p >= self.least_p)
        return inside


def corner(kind: int, region: Region) -> tuple[Floats, Floats]:
    """Where a ratio is least; if that point is outside, nothing is inside.

    Each ratio is monotone in w and p, and what one of them may be is an interval that moves one way with the
    other: so one of them is at its end, and the other at the best that this leaves.
    """
    if kind in (SERVERS_PER_WORKER, PER_SERVER):
        p, w = corner(MIRRORED[kind], region.mirrored())
        return w, p
    least_w, least_p, p_per_w, w_per_p, on_w, on_p, limit = region
    if kind == PER_WORKER:
        beside_least = least_quotient(limit - on_p * least_p, on_w, axis=0)
        w = np.minimum(beside_least, least_quotient(limit, on_w + on_p * p_per_w, axis=0))
        return w, np.maximum(least_p, p_per_w * w)
    w = np.maximum(least_w, w_per_p * least_p)
    if kind == WORKERS_PER_SERVER:
        return w, np.minimum(least_quotient(limit - on_w * w, on_p, axis=0), quotient(w, w_per_p))
    return w, np.maximum(least_p, p_per_w * w)


def _largest_line(line: Floats, demands: Demands) -> Floats:
    """The largest value of a linear term: at a corner, where two limits meet or at an end."""
    one = np.ones(len(line))
    top = most_workers(demands, one)
    largest = np.zeros(len(line))
    on_w, on_p, limit = (field.T for field in fields_of(demands))
    first, second = np.triu_indices(len(limit), 1)
    across = on_w[first] * on_p[second] - on_w[second] * on_p[first]
    along = limit[first] * on_p[second] - limit[second] * on_p[first]
    meet = np.divide(along, across, out=np.ones_like(along), where=across != 0)
    for w in (one, top, *np.clip(meet, one, top)):
        largest = np.maximum(largest, line[:, 0] * w + line[:, 1] * most_servers(demands, w))
    return largest


def value_of(problem: Problem, lines: Floats, kind: int, w: Floats, p: Floats) -> Floats:
    """Return the values of one ratio."""
    if kind in LINES:
        on_w, on_p = lines[kind].T
        line: Floats = on_w * w + on_p * p
        return line
    factor = problem.factors()[kind + 1]
    if kind == WORKERS_PER_SERVER:
        return factor * w / p
    if kind == SERVERS_PER_WORKER:
        return factor * p / w
    return factor / (w if kind == PER_WORKER else p)


def ranges_of(problem: Problem, lines: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each ratio, (6, n)."""
    one, none = np.ones_like(problem.constant), np.zeros_like(problem.constant)
    whole = Region(one, one, none, none, *(field.T for field in fields_of(problem.demands)))
    least, largest = [], []
    for kind in range(6):
        least.append(value_of(problem, lines, kind, *corner(kind, whole)))
        if kind in LINES:
            largest.append(_largest_line(lines[kind], problem.demands))
            continue
        # w/p is largest where p/w is least; 1/w and 1/p are largest at one.
        per_one = kind in (PER_WORKER, PER_SERVER)
        far = (one, one) if per_one else corner(MIRRORED[kind], whole)
        largest.append(value_of(problem, lines, kind, *far))
    return np.array(least), np.array(largest)
