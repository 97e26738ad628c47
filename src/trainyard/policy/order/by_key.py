"""Preemptive orders that give every active job one number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.choose.walk import Keys, by_key, take_in_order
from trainyard.policy.stages import Order
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column


class KeyOrder(Order):
    """A preemptive order: active jobs by ascending key."""

    @abstractmethod
    def key(self, snapshot: Snapshot) -> Keys:
        """Return one number per active job; the smallest goes first, ties in order of submission."""

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank all active jobs."""
        return by_key(self.key(snapshot), snapshot.table.column(C.SEQ))

    def choose(self, snapshot: Snapshot, demand: Floats) -> Ints:
        """Return the rows that fit at once, sorting no more than necessary."""
        seq, about = snapshot.table.column(C.SEQ), len(snapshot.target) + 32
        return take_in_order(self.key(snapshot), seq, demand, snapshot.up_gpus, about)


class SteadyOrder(KeyOrder):
    """A preemptive order under which jobs can stand in line: it answers for one job at a time.

    The key of a waiting job does not change. Running jobs whose keys change alike share a line, in which
    they stand by a token that does not change. What changes alike is their *measure*: at any time it is
    pace x (token + drift x time), and the larger it is, the larger the key may be.
    """

    @abstractmethod
    def waiting_key(self, record: Record) -> float:
        """Return the key of a job that waits."""

    @abstractmethod
    def key_of(self, record: Record, now_s: float) -> float:
        """Return the key of a job that has GPUs."""

    @abstractmethod
    def line(self, record: Record) -> tuple[Hashable, float]:
        """Return the line and the token of a job that has GPUs."""

    @abstractmethod
    def motion(self, line: Hashable) -> tuple[float, float]:
        """Return the pace and the drift of a line."""

    @abstractmethod
    def bound(self, measure: float, now_s: float) -> float:
        """Return a number that no key of a running job with this measure, or a smaller one, exceeds."""

    @abstractmethod
    def least(self, key: float, now_s: float) -> float:
        """Return a measure below which running jobs have smaller keys than this."""
