"""The restricted master problem: which of the configurations known so far, and at which prices?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.solve.program import Effort, Program, Variables


class Columns(NamedTuple):
    """Configurations: whose, which, at what cost."""

    jobs: Ints  # (n,)
    configs: Ints  # (n, M)
    cost: Floats  # (n,)


class Mixture(NamedTuple):
    """An optimal fractional answer."""

    share: Floats  # (n,): of each column
    prices: Floats  # (M,): of one worker of each type
    worth: Floats  # (jobs,): what each job may cost in all; a column below that would improve the answer
    value: float


class Master:
    """A program that grows: every job takes one configuration in all, nothing is used beyond capacity."""

    def __init__(self, jobs: int, capacity: Ints, scale: float, out: float) -> None:
        self.jobs = jobs
        self.scale = scale  # completion times span many orders; costs are counted in this
        self.out = out  # what it costs to leave a job out that must run
        self.parts: list[Columns] = []
        least = np.concatenate([np.ones(jobs), np.full(len(capacity), -np.inf)])
        self.program = Program(least, np.concatenate([np.ones(jobs), capacity]))

    def add(self, columns: Columns) -> None:
        """Offer more configurations."""
        count, types = columns.configs.shape
        row = np.empty((count, 1 + types), dtype=np.int64)
        row[:, 0] = columns.jobs
        row[:, 1:] = self.jobs + np.arange(types)
        entry = np.column_stack([np.ones(count), columns.configs]).ravel()
        start = np.arange(count) * (1 + types)
        cost = np.minimum(columns.cost, self.out) / self.scale
        self.program.add(Variables(cost, np.full(count, np.inf), start, row.ravel(), entry))
        self.parts.append(columns)

    def columns(self) -> Columns:
        """All configurations offered so far."""
        return Columns(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))

    def mixture(self) -> Mixture:
        """Return the best mixture, starting from where the last one ended."""
        best = self.program.best()
        assert best is not None  # that no job runs is always possible
        duals = best.duals * self.scale
        prices = np.maximum(-duals[self.jobs :], 0.0)
        return Mixture(best.x, prices, duals[: self.jobs], best.cost * self.scale)

    def choice(self, nodes: int) -> Ints:
        """Return one configuration for each job at the least cost, or the best found within so many nodes."""
        x = self.program.best_whole(Effort(nodes=nodes, least_gap=1e-9))
        return np.zeros(0, dtype=np.int64) if x is None else np.flatnonzero(x > 0.5)
