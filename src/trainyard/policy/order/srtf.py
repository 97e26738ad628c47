"""Orders by remaining time: shortest job, shortest remaining time, smallest remaining service."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.order.by_key import KeyOrder
from trainyard.policy.stages import Fill, Order
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


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


class Srtf(KeyOrder):
    """Shortest remaining time first."""

    steady: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining seconds."""
        return snapshot.remaining_s()

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the same of one job."""
        return snapshot.remaining_s_of(row)


class Srsf(KeyOrder):
    """Smallest remaining service (GPU-time) first."""

    steady: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining GPU-seconds."""
        left: Floats = snapshot.remaining_s() * snapshot.table.column(C.GPUS)
        return left

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the same of one job."""
        return snapshot.remaining_s_of(row) * snapshot.table.cells[C.GPUS][row]
