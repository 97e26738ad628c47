"""Order: first come, first served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from trainyard.model.arrays import Ints
from trainyard.policy.stages import Fill, Order
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


class Fifo(Order):
    """First come, first served; running jobs are never disturbed."""

    preemptive: ClassVar[bool] = False

    def __init__(self, fill: Fill = "strict") -> None:
        self.fill = fill

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank waiting jobs by submission."""
        return snapshot.waiting_rows()

    def blocked(self, snapshot: Snapshot) -> bool:
        """Look at the first in line; with any other rule than strict, others may pass."""
        if self.fill != "strict":
            return False
        first = next(self.heads(snapshot), None)
        return first is not None and first.gpus > snapshot.free.total

    def heads(self, snapshot: Snapshot) -> Iterator[Record]:
        """Yield waiting jobs without looking at the whole queue."""
        return iter(snapshot.waiting)
