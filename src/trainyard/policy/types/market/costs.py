"""What a market minimises: weighted completion times, with restarts and a soft limit on unfairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trainyard.model.arrays import Floats, Ints

STEEP = 10.0  # every second beyond a job's limit counts this many times more


class Seconds(Protocol):
    """Whatever can tell completion times."""

    def seconds(self, jobs: Ints, configs: Ints) -> Floats:
        """Completion time of each of some jobs with its workers by type; infinite if it cannot have them."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost to job i of the workers c: weight_i x (J_i(c) + restart_i + STEEP x what exceeds limit_i).

    The workers that it holds take held_s and no restart; no workers at all cost wait_i.
    """

    times: Seconds
    capacity: Ints  # (M,)
    weight: Floats  # (S,)
    limit: Floats  # (S,): seconds; infinite for none
    restart: Floats  # (S,): seconds
    held: Ints  # (S, M)
    held_s: Floats  # (S,): completion time with these where they are, which may be scattered
    wait: Floats  # (S,): infinite if it must run

    @property
    def jobs(self) -> int:
        """How many take part."""
        return len(self.weight)

    @property
    def types(self) -> int:
        """How many goods there are."""
        return len(self.capacity)

    def of(self, jobs: Ints, configs: Ints) -> Floats:
        """Cost to each of some jobs of its workers by type."""
        moved = (configs != self.held[jobs]).any(axis=1)
        took = np.where(moved, self.times.seconds(jobs, configs) + self.restart[jobs], self.held_s[jobs])
        return np.where(configs.any(axis=1), self.value(jobs, took), self.wait[jobs])

    def value(self, jobs: Ints, seconds: Floats) -> Floats:
        """What these seconds, restart included, cost each of some jobs; they may have a second axis."""
        weight, limit = (x[jobs].reshape(-1, *[1] * (seconds.ndim - 1)) for x in (self.weight, self.limit))
        with np.errstate(invalid="ignore"):
            beyond = np.where(seconds > limit, seconds - limit, 0.0)
        worth: Floats = weight * (seconds + STEEP * beyond)
        return worth

    def total(self, mix: Ints) -> float:
        """Cost of a whole assignment."""
        return float(self.of(np.arange(self.jobs), mix).sum())


def plain_costs(times: Seconds, jobs: int, capacity: Ints, limit: Floats | None = None) -> Costs:
    """The plain sum of completion times of all jobs; with a limit, as fair as that."""
    none = np.zeros(jobs)
    held = np.zeros((jobs, len(capacity)), dtype=np.int64)
    never = none + np.inf
    return Costs(times, capacity, none + 1.0, never if limit is None else limit, none, held, never, never)
