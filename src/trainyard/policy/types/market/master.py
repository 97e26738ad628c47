"""The restricted master problem: which of the configurations known so far, and at which prices? By HiGHS."""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from trainyard.model.arrays import Floats, Ints


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
    """A program that grows: every job takes one column in all, nothing is used beyond capacity."""

    def __init__(self, jobs: int, capacity: Ints, scale: float, out: float) -> None:
        types = len(capacity)
        self.jobs = jobs
        self.scale = scale  # completion times span many orders; costs are counted in this
        self.out = out  # what it costs to leave a job out that must run
        self.parts: list[Columns] = []
        self.solver = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)  # the same answer on every machine
        least = np.concatenate([np.ones(jobs), np.full(types, -highspy.kHighsInf)])
        most = np.concatenate([np.ones(jobs), capacity])
        starts, none = np.zeros(jobs + types, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self.solver.addRows(jobs + types, least, most, 0, starts, none, np.zeros(0))

    def add(self, columns: Columns) -> None:
        """Offer more configurations."""
        count, types = columns.configs.shape
        index = np.empty((count, 1 + types), dtype=np.int32)
        index[:, 0] = columns.jobs
        index[:, 1:] = self.jobs + np.arange(types)
        entry = np.column_stack([np.ones(count), columns.configs]).ravel()
        starts = np.arange(count, dtype=np.int32) * (1 + types)
        zero, infinite = np.zeros(count), np.full(count, highspy.kHighsInf)
        cost = np.minimum(columns.cost, self.out) / self.scale
        self.solver.addCols(count, cost, zero, infinite, entry.size, starts, index.ravel(), entry)
        self.parts.append(columns)

    def columns(self) -> Columns:
        """All configurations offered so far."""
        return Columns(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))

    def mixture(self) -> Mixture:
        """Return the best mixture, starting from where the last one ended."""
        self.solver.run()
        solution = self.solver.getSolution()
        duals = np.array(solution.row_dual) * self.scale
        value = self.solver.getInfo().objective_function_value * self.scale
        prices = np.maximum(-duals[self.jobs :], 0.0)
        return Mixture(np.array(solution.col_value), prices, duals[: self.jobs], value)

    def choice(self, nodes: int) -> Ints:
        """Return one column for each job at the least cost, or the best found within so many nodes."""
        count = self.solver.getNumCol()
        whole = np.full(count, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        self.solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), whole)
        for option, value in (("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9), ("mip_max_nodes", nodes)):
            self.solver.setOptionValue(option, value)
        self.solver.run()
        return np.flatnonzero(np.array(self.solver.getSolution().col_value) > 0.5)
