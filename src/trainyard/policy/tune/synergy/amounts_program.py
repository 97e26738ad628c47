"""Synergy-OPT, first linear program (Mohan et al., OSDI'22): what each job gets, the cluster as one big node.

    maximise  sum_j sum_k value_jk y_jk     (how fast each job is, relative to its proportional share)
    such that sum_j gpus_j sum_k cpus_jk y_jk <= CPUs of the cluster, the same for memory,
              sum_k y_jk = 1 and sum_k value_jk y_jk >= floor_j for each job, y >= 0 (or 0 and 1 only)

The floors need no rows: what a job may get is the convex hull of its options, cut at the floor. Its corners
are the options above the floor, and mixtures of one above and one below that are exactly at the floor. With
these as options, a vertex has at most two jobs between two corners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
from trainyard.policy.tune.synergy.classes import Classes, Pieces, classes_of, deal
from trainyard.solve.program import Rows, maximise


@dataclass(frozen=True, slots=True)
class Menus:
    """What each of n jobs may get, per GPU: k options each. Padding has value -inf."""

    gpus: Ints  # (n,)
    cpus: Floats  # (n, k), per GPU
    memory_gb: Floats  # (n, k), per GPU
    value: Floats  # (n, k), speed relative to that at the job's proportional share
    floor: Floats  # (n,), the least value each job must get


@dataclass(frozen=True, slots=True)
class Shares:
    """What each job gets, per GPU, and how fast that makes it."""

    objective: float
    cpus: Floats
    memory_gb: Floats
    value: Floats


def best_shares(menus: Menus, cpus_total: float, memory_total: float, integer: bool = False) -> Shares | None:
    """Return the shares with the largest sum of values, or None if the floors cannot all be met.

    Of identical jobs, the first ones get the options with the largest value. With `integer` no job gets a
    mixture of options.
    """
    columns = (menus.gpus, menus.floor, menus.cpus, menus.memory_gb, menus.value)
    classes = classes_of(np.column_stack(columns).astype(np.float64))
    corners = [_corners(menus, job, integer) for job in classes.first]
    lengths = np.array([len(options) for options in corners], dtype=np.int64)
    if not lengths.all():
        return None
    class_ = np.repeat(np.arange(lengths.size), lengths)
    options = np.concatenate([np.empty((0, 3)), *corners])
    needs = menus.gpus[classes.first][class_] * options[:, :2].T
    resources = Rows(*_dense(needs), np.array([cpus_total, memory_total]))
    every_job = Rows(class_, np.arange(class_.size), np.ones(class_.size), classes.size.astype(np.float64))
    count = maximise(options[:, 2], resources, every_job, every_job.limit[class_], integer)
    if count is None:
        return None
    jobs = _hand_out(options, deal(class_, count, classes.size), classes)
    return Shares(float(jobs[:, 2].sum()), jobs[:, 0], jobs[:, 1], jobs[:, 2])


def _dense(entries: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and entries of a matrix."""
    row, column = np.indices(entries.shape)
    return row.ravel(), column.ravel(), entries.ravel()


def _hand_out(options: Floats, pieces: Pieces, classes: Classes) -> Floats:
    """What each job gets, (cpus, memory, value): the slots of a class go to its jobs in order."""
    slots = np.zeros((classes.of.size, 3))
    np.add.at(slots, pieces.slot, pieces.fraction[:, None] * options[pieces.cell])
    jobs = np.empty_like(slots)
    jobs[classes.of.argsort(kind="stable")] = slots
    return jobs


def _corners(menus: Menus, job: int, integer: bool) -> Floats:
    """Options (cpus, memory, value) of one job worth considering, best value first."""
    options = np.column_stack([menus.cpus[job], menus.memory_gb[job], menus.value[job]])
    options = _undominated(options[np.isfinite(options[:, 2])])
    above, below = np.split(options, [np.sum(options[:, 2] >= menus.floor[job] - PART)])
    if integer:
        return above
    return _undominated(np.concatenate([above, _at_floor(above, below, float(menus.floor[job]))]))


def _at_floor(above: Floats, below: Floats, floor: float) -> Floats:
    """Mixtures of two options with exactly the floor's value, without those that need more than others do."""
    high, low = above[:, None, :], below[None, :, :]
    part = ((floor - low[..., 2]) / (high[..., 2] - low[..., 2]))[..., None]
    points = (low + np.minimum(part, 1.0) * (high - low)).reshape(-1, 3)
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    least = np.minimum.accumulate(points[:, 1])
    return _lower_hull(points[np.diff(least, prepend=np.inf) < 0])


def _lower_hull(points: Floats) -> Floats:
    """Of points by ascending CPUs and descending memory, those that no mixture of two others undercuts."""
    while len(points) > 2:
        before, after = points[1:-1] - points[:-2], points[2:] - points[:-2]
        low = before[:, 0] * after[:, 1] > before[:, 1] * after[:, 0]
        if low.all():
            break
        points = points[np.pad(low, 1, constant_values=True)]
    return points


def _undominated(options: Floats) -> Floats:
    """Without options that need no less than another and give no more; best value first."""
    options = options[np.lexsort((options[:, 1], options[:, 0], -options[:, 2]))]
    cpus, memory = options[:, 0], options[:, 1]
    # An earlier option gives no less, so needing no more is enough.
    better = np.triu((cpus[:, None] <= cpus) & (memory[:, None] <= memory), 1)
    kept: Floats = options[~better.any(axis=0)]
    return kept
