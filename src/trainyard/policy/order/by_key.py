"""Preemptive orders that give every active job one number."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.choose.walk import Keys, by_key, take_in_order
from trainyard.policy.stages import Order
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


class KeyOrder(Order):
    """A preemptive order: active jobs by ascending key."""

    steady: ClassVar[bool] = False  # whether the key of a job stays the same as long as it waits

    @abstractmethod
    def key(self, snapshot: Snapshot) -> Keys:
        """Return one number per active job; the smallest goes first, ties in order of submission."""

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the key of one waiting job, for orders that are steady."""
        return float(self.key(snapshot)[row])

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank all active jobs."""
        return by_key(self.key(snapshot), snapshot.table.column(C.SEQ))

    def choose(self, snapshot: Snapshot, demand: Floats) -> Ints:
        """Return the rows that fit at once, sorting no more than necessary."""
        seq, about = snapshot.table.column(C.SEQ), len(snapshot.target) + 32
        return take_in_order(self.key(snapshot), seq, demand, snapshot.up_gpus, about)
