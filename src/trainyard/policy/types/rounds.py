"""Stages that want to be asked again at regular times, and those that only then choose anew who runs."""

from __future__ import annotations

from abc import abstractmethod
from math import floor, inf

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Ints, Mask
from trainyard.model.tolerance import COUNT
from trainyard.policy.stages import Changes
from trainyard.policy.types.joint import Joint
from trainyard.state.snapshot import Snapshot


class Periodic(Joint):
    """A joint stage that is asked again at every multiple of `round_s`, as long as anything runs."""

    def __init__(self, round_s: float) -> None:
        if not round_s > 0:
            raise InputError(f"round_s is {round_s:g}; give seconds above 0")
        self.round_s = round_s

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return the next round, if anything runs from now on."""
        stays = any(job_id not in changes for job_id in snapshot.target)
        if not stays and not any(changes.values()):
            return inf
        return (floor(snapshot.now_s / self.round_s + COUNT) + 1) * self.round_s


class Rounds(Periodic):
    """Chooses who runs at the start of each round; in between only hands out what is idle."""

    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return workers by type, those of running jobs as they are except at the start of a round."""
        stay: Mask = held.sum(axis=1) > 0
        if self._begins(snapshot.now_s):
            stay = np.zeros_like(stay)
        idle = capacity - held[stay].sum(axis=0)
        if stay.all() or not idle.any():
            return np.where(stay[:, None], held, 0)
        return self.choose(snapshot, ranked, held, capacity, stay)

    @abstractmethod
    def choose(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, stay: Mask) -> Ints:
        """Return workers by type; rows that stay keep what they hold."""

    def _begins(self, now_s: float) -> bool:
        """Whether a round begins now; by a real clock it may be a moment ago."""
        late_s = now_s - floor(now_s / self.round_s + COUNT) * self.round_s
        return late_s <= min(0.01 * self.round_s, 1.0)
