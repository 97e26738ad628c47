"""Local search: give, take, exchange single workers as long as the total cost falls.

A step of one job adds a worker, drops one, or changes the type of one. Steps that need a worker which no job
has left over are paired with a step of another job that frees one. Where there are few jobs, pairs of them
then divide all that they hold anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.pairs import trade_pairs

ALL_PAIRS_UP_TO = 64  # jobs up to which all pairs trade besides
PASSES = 20
SERVED = 1e300  # what it is worth that a job which must run can do so: more than anything, yet can be added


class Move(NamedTuple):
    """What a step takes from the idle workers, by type, and what it gives back."""

    takes: int  # a type, or -1
    gives: int


def single_steps(types: int, resize: bool = True) -> list[Move]:
    """What can be done with one worker. Without `resize` only its type changes."""
    every = range(types)
    one = [Move(t, -1) for t in every] + [Move(-1, t) for t in every] if resize else []
    return one + [Move(t, u) for t in every for u in every if t != u]


def changes_of(steps: list[Move], types: int) -> Ints:
    """What steps do to the workers of a job, by type."""
    change: Ints = np.zeros((len(steps), types), dtype=np.int64)
    for row, step in zip(change, steps, strict=True):
        if step.takes >= 0:
            row[step.takes] += 1
        if step.gives >= 0:
            row[step.gives] -= 1
    return change


def polish(costs: Costs, mix: Ints, resize: bool = True) -> Ints:
    """Improve an assignment, in place of a copy. Without `resize` every job keeps its number of workers."""
    mix = mix.copy()
    if costs.jobs:
        _Polish(costs, mix, resize).run()
        for _ in range(PASSES if resize and costs.jobs <= ALL_PAIRS_UP_TO else 0):
            if not trade_pairs(costs, mix):
                break
            _Polish(costs, mix, resize).run()
    return mix


class _Polish:
    def __init__(self, costs: Costs, mix: Ints, resize: bool) -> None:
        self.costs = costs
        self.mix = mix
        self.idle: Ints = costs.capacity - mix.sum(axis=0)
        self.steps = single_steps(costs.types, resize)
        self.change = changes_of(self.steps, costs.types)
        self.pairs = self._pairs()
        self.gain = self._gains(np.arange(costs.jobs))

    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Two steps: the second one gives what the first one takes; and what must be idle for the second."""
        found = [
            (a, b, second.takes if second.takes != first.gives else -1)
            for a, first in enumerate(self.steps)
            for b, second in enumerate(self.steps)
            if first.takes >= 0 and second.gives == first.takes
        ]
        first, second, needs = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return first, second, needs

    def _gains(self, jobs: Ints) -> Floats:
        """How much the cost of each job falls with each step; minus infinity where it cannot be done."""
        tried = self.mix[jobs][:, None] + self.change
        possible = (tried >= 0).all(axis=2)
        width = len(self.steps)
        who = np.repeat(jobs, width)
        after = self.costs.of(who, np.maximum(tried, 0).reshape(-1, self.costs.types)).reshape(-1, width)
        before = self.costs.of(jobs, self.mix[jobs])[:, None]
        with np.errstate(invalid="ignore"):
            gains: Floats = np.where(possible, before - after, -np.inf)
        return np.nan_to_num(gains, nan=-np.inf, posinf=SERVED, neginf=-np.inf)

    def run(self) -> None:
        """Take the best step, again and again."""
        least = PART * max(self.costs.total(self.mix), 0.0) if self.costs.jobs else 0.0
        least = least if np.isfinite(least) else 0.0
        for _ in range(20 * self.costs.jobs + 100):
            gain, moves = self._best()
            if gain <= least:
                return
            for job, step in moves:
                self.mix[job] += self.change[step]
                self.idle -= self.change[step]
            jobs = np.array([job for job, _ in moves])
            self.gain[jobs] = self._gains(jobs)

    def _best(self) -> tuple[float, list[tuple[int, int]]]:
        """The best single step into what is idle, or the best pair of steps."""
        first, second = self._two_best()
        best = self.gain[first, np.arange(len(self.steps))]
        there = self._there(np.array([step.takes for step in self.steps]))
        single = int(np.where(there, best, -np.inf).argmax())
        gain, moves = (float(best[single]) if there[single] else -np.inf), [(int(first[single]), single)]
        a, b, needs = self.pairs
        if len(a) and self.costs.jobs > 1:
            together = np.where(self._there(needs), self._pair_gains(a, b, first, second), -np.inf)
            pair = int(together.argmax())
            if together[pair] > gain:
                gain, moves = (
                    float(together[pair]),
                    self._pair_jobs(int(a[pair]), int(b[pair]), first, second),
                )
        return gain, moves

    def _there(self, types: Ints) -> np.typing.NDArray[np.bool_]:
        """Whether a worker of each type is idle; nothing needed is always there."""
        return (types < 0) | (self.idle[types] > 0)

    def _two_best(self) -> tuple[Ints, Ints]:
        """For each step the job that gains most, and the next one."""
        every = np.arange(len(self.steps))
        first = self.gain.argmax(axis=0)
        if self.costs.jobs == 1:
            return first, first
        kept = self.gain[first, every].copy()
        self.gain[first, every] = -np.inf
        second = self.gain.argmax(axis=0)
        self.gain[first, every] = kept
        return first, second

    def _pair_gains(self, a: Ints, b: Ints, first: Ints, second: Ints) -> Floats:
        same = first[a] == first[b]
        apart = self.gain[first[a], a] + self.gain[first[b], b]
        one = self.gain[first[a], a] + self.gain[second[b], b]
        other = self.gain[second[a], a] + self.gain[first[b], b]
        return np.where(same, np.maximum(one, other), apart)

    def _pair_jobs(self, a: int, b: int, first: Ints, second: Ints) -> list[tuple[int, int]]:
        i, j = int(first[a]), int(first[b])
        if i == j:
            if self.gain[i, a] + self.gain[second[b], b] >= self.gain[second[a], a] + self.gain[j, b]:
                j = int(second[b])
            else:
                i = int(second[a])
        return [(i, a), (j, b)]
