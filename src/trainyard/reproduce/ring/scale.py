"""How much of each ring experiment is done."""

from __future__ import annotations

from typing import NamedTuple

from trainyard.reproduce.ring.workload import LEVELS, OTHERS, Pattern


class Scale(NamedTuple):
    """What every mean is taken over."""

    seeds: range
    batches: range  # of single decisions
    levels: tuple[Pattern, ...] = LEVELS  # most contention first
    others: tuple[Pattern, ...] = OTHERS


FULL = Scale(range(10), range(10))
QUICK = Scale(range(3), range(2))
