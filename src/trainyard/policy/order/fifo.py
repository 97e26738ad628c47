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
    _first_come = False

    def __init__(self, fill: Fill = "strict") -> None:
        self.fill = fill
        self._first_come = type(self).heads is Fifo.heads  # else a subclass may put another first

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank waiting jobs by submission."""
        return snapshot.waiting_rows()

    def blocked(self, snapshot: Snapshot) -> bool:
        """Look at the first in line; with any other rule than strict, others may pass."""
        if self.fill != "strict" or not self._first_come:
            return False
        return snapshot.waiting.head().gpus > snapshot.free.total

    def heads(self, snapshot: Snapshot) -> Iterator[Record]:
        """Yield waiting jobs without looking at the whole queue."""
        return iter(snapshot.waiting)
