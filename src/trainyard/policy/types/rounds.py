"""Stages that choose anew who runs at the start of each round only, and let everybody have a turn."""

from __future__ import annotations

from abc import abstractmethod
from math import floor, inf

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Ints, Mask
from trainyard.model.limits import MAX_S, SHORTEST_SLICE_S
from trainyard.model.tolerance import COUNT
from trainyard.policy.bounds import within
from trainyard.policy.turns import has_turn
from trainyard.policy.types.by_type import ByType
from trainyard.state.snapshot import Snapshot


def period(round_s: float) -> float:
    """Return the length of a round as given, if it is one."""
    if not round_s > 0:
        raise InputError(f"round_s is {round_s:g}; give seconds above 0")
    within("round_s", round_s, SHORTEST_SLICE_S, MAX_S)
    return round_s


class Rounds(ByType):
    """Chooses who runs at the start of each round; in between only hands out what is idle.

    A job that was started so late that it has not had its turn yet stays for another round.
    """

    def __init__(self, round_s: float) -> None:
        self.period_s = period(round_s)

    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return workers by type, those of running jobs as they are except at the start of a round."""
        stay: Mask = held.sum(axis=1) > 0
        if self._begins(snapshot):
            stay &= has_turn(snapshot, ranked)
        idle = capacity - held[stay].sum(axis=0)
        if stay.all() or not idle.any():
            return np.where(stay[:, None], held, 0)
        return self.choose(snapshot, ranked, held, capacity, stay)

    @abstractmethod
    def choose(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, stay: Mask) -> Ints:
        """Return workers by type; rows that stay keep what they hold."""

    def _begins(self, snapshot: Snapshot) -> bool:
        """Whether a round began since the last decision, however late this one comes."""
        before_s = snapshot.decided_s
        return before_s == -inf or self._round(before_s) < self._round(snapshot.now_s)

    def _round(self, time_s: float) -> int:
        return floor(time_s / self.period_s + COUNT)
