"""Orders by remaining time: shortest job, shortest remaining time, smallest remaining service."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil, log2
from typing import ClassVar, cast

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
from trainyard.policy.order.by_key import SteadyOrder
from trainyard.policy.stages import Fill, Order
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column
UP = 1 + PART
EVERYBODY = float("-inf")
STEPS = 4  # lines of running jobs by the pace at which their keys fall: so many when it doubles


class Sjf(Order):
    """Shortest predicted run time first; running jobs are never disturbed."""

    preemptive: ClassVar[bool] = False

    def __init__(self, fill: Fill = "strict") -> None:
        self.fill = fill

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank waiting jobs by predicted remaining time."""
        rows = snapshot.waiting_rows()
        ranked: Ints = rows[np.argsort(snapshot.remaining_s()[rows], kind="stable")]
        return ranked


class ByEnd(SteadyOrder):
    """An order by what is left: running jobs stand by their ends."""

    def motion(self, line: Hashable) -> tuple[float, float]:
        """The measure is what the key would be without a stall; it stays with who makes no progress."""
        return (1.0, 0.0) if line is None else (2.0 ** (cast(int, line) / STEPS), -1.0)

    def bound(self, measure: float, now_s: float) -> float:
        """Return the measure; what rounding may add is allowed for."""
        return (measure * UP if measure > 0 else 0.0) + PART * abs(now_s)

    def least(self, key: float, now_s: float) -> float:
        """Return the key, less what rounding may have added."""
        return (key - PART * abs(now_s)) / UP if key > PART * abs(now_s) else EVERYBODY


class Srtf(ByEnd):
    """Shortest remaining time first."""

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining seconds."""
        return snapshot.remaining_s()

    def waiting_key(self, record: Record) -> float:
        """Return the same of one job."""
        return record.remaining / record.reference_rate

    def key_of(self, record: Record, now_s: float) -> float:
        """Return the same of one job."""
        return record.remaining_at(now_s) / record.reference_rate

    def line(self, record: Record) -> tuple[Hashable, float]:
        """Running jobs stand by their ends, one line for all whose keys fall about equally fast."""
        return _line(record, record.reference_rate)


class Srsf(ByEnd):
    """Smallest remaining service (GPU-time) first."""

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining GPU-seconds."""
        left: Floats = snapshot.remaining_s() * snapshot.table.column(C.GPUS)
        return left

    def waiting_key(self, record: Record) -> float:
        """Return the same of one job."""
        return record.remaining / record.reference_rate * record.gpus

    def key_of(self, record: Record, now_s: float) -> float:
        """Return the same of one job."""
        return record.remaining_s(now_s) * record.gpus

    def line(self, record: Record) -> tuple[Hashable, float]:
        """Running jobs stand by their ends, one line for all whose keys fall about equally fast."""
        return _line(record, record.reference_rate / record.gpus)


def _line(record: Record, per_key: float) -> tuple[int | None, float]:
    """The line of a running job, and when it will end; of one that makes no progress, its key.

    `per_key` is how many samples count as 1 in the key.
    """
    rate = record.rate
    if rate == per_key:
        return 0, record.since + record.remaining / rate
    if not rate > 0:
        return None, record.remaining / per_key
    return ceil(STEPS * log2(rate / per_key)), record.since + record.remaining / rate
