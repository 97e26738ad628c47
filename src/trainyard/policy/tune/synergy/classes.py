"""Identical jobs as one class with a size: a linear program over classes is small, and its answer as good.

By symmetry: the average of what the jobs of a class get is possible for each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import WHOLE_COUNT


class Classes(NamedTuple):
    """Jobs grouped by what they have in common."""

    of: Ints  # the class of each job, numbered in order of appearance
    first: Ints  # one job of each class
    size: Ints  # jobs in each class


class Pieces(NamedTuple):
    """Slot by slot, which cell fills it and how much of it. A slot is one job of a class, not yet which."""

    slot: Ints
    cell: Ints
    fraction: Floats


def classes_of(rows: Floats) -> Classes:
    """Group jobs whose rows are identical."""
    seen: dict[bytes, int] = {}
    numbers = [seen.setdefault(row.tobytes(), len(seen)) for row in np.ascontiguousarray(rows)]
    of = np.array(numbers, dtype=np.int64)
    _, first, size = np.unique(of, return_index=True, return_counts=True)
    return Classes(of, first, size)


def deal(class_: Ints, count: Floats, size: Ints) -> Pieces:
    """Fill the slots of each class, one after the other, from cells that hold `count` jobs of one class each.

    The whole part of each cell goes to whole slots; only what is left is cut, so of p cells of a class with a
    broken count at most p - 1 slots are cut.
    """
    whole = np.floor(count + WHOLE_COUNT)
    part = np.where(count - whole < WHOLE_COUNT, 0.0, count - whole)
    cut_slots = size - np.bincount(class_, whole, size.size)
    broken = np.bincount(class_, part, size.size)
    part *= (cut_slots / np.where(broken > 0, broken, 1.0))[class_]
    order = np.lexsort((np.repeat([0, 1], count.size), np.tile(class_, 2)))
    ends = np.concatenate([whole, part])[order].cumsum()
    ends = np.where(np.abs(ends - ends.round()) < WHOLE_COUNT, ends.round(), ends)
    cuts = np.unique(np.concatenate([ends, np.arange(size.sum() + 1.0)]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    cell = np.tile(np.arange(count.size), 2)[order][ends.searchsorted(middle)]
    return Pieces(middle.astype(np.int64), cell, np.diff(cuts))
