"""Linear and integer programs by HiGHS. No other module knows the solver.

    minimise  cost x   such that  least <= A x <= most  and  0 <= x <= upper

The same program has the same answer on every machine: one thread, no limit by the clock. Programs share
nothing, so threads may solve one each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from trainyard.errors import SolverError
from trainyard.model.arrays import Floats, Ints

if TYPE_CHECKING:
    from highspy import HighsModelStatus, HighsVarType

Method = Literal["choose", "simplex", "ipx"]
MOST_NODES = 2**31 - 1  # HiGHS counts in 32 bits


class Rows(NamedTuple):
    """Constraints: a sparse matrix as (row, column, entry), and one limit per row."""

    row: Ints
    column: Ints
    entry: Floats
    limit: Floats


class Variables(NamedTuple):
    """Variables: the entries of column j are those from start[j] up to start[j + 1] or the end."""

    cost: Floats
    upper: Floats
    start: Ints
    row: Ints
    entry: Floats


class Effort(NamedTuple):
    """When to stop looking for a better integer solution; never by the clock: the same answer every time."""

    gap: float = 0.0  # to the optimum, relative
    nodes: int = MOST_NODES  # of the search tree
    least_gap: float = 1e-6  # to the optimum, absolute


class Optimum(NamedTuple):
    """A vertex with the least cost."""

    x: Floats
    duals: Floats  # one per row: what the cost gains per unit of the limit that holds
    cost: float


NO_ROWS = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def maximise(
    gain: Floats,
    at_most: Rows,
    equal: Rows,
    upper: Floats,
    integer: bool = False,
    effort: Effort = Effort(),  # noqa: B008 - a constant
) -> Floats | None:
    """Return the best x with 0 <= x <= upper, a vertex of the feasible set; None if there is no best x.

    An integer search that was cut short returns the best x so far; None if it has found none.
    """
    most = np.concatenate([at_most.limit, equal.limit])
    least = np.concatenate([np.full(at_most.limit.size, -np.inf), equal.limit])
    if not gain.size:
        return np.zeros(0) if (least <= 0).all() and (most >= 0).all() else None
    program = Program(least, most)
    program.add(_variables(-gain, upper, at_most, equal))
    if integer:
        return program.best_whole(effort)
    # Interior point with crossover to a vertex: 2 to 8 times as fast as simplex on these.
    best = program.best("ipx")
    return None if best is None else best.x


class Program:
    """A program that may grow: every solution starts from where the last one ended."""

    def __init__(self, least: Floats, most: Floats) -> None:
        import highspy  # a tenth of a second of start-up that only some policies need

        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]
        self._set("output_flag", False)
        self._set("threads", 1)
        self._set("mip_heuristic_run_feasibility_jump", False)  # a quarter of the time, the same answers
        nothing = np.zeros(0, dtype=np.int32)
        start = np.zeros(least.size, dtype=np.int32)
        self._accept(self._solver.addRows(least.size, least, most, 0, start, nothing, np.zeros(0)))

    def add(self, more: Variables) -> None:
        """Add variables."""
        count, entries = more.cost.size, more.entry.size
        start, row = more.start.astype(np.int32), more.row.astype(np.int32)
        bounds = np.zeros(count), more.upper
        accepted = self._solver.addCols(count, more.cost, *bounds, entries, start, row, more.entry)
        self._accept(accepted)

    def best(self, method: Method = "choose") -> Optimum | None:
        """Return the optimum; None if nothing is feasible, or if the cost has no lower bound."""
        from highspy import HighsModelStatus as Status

        status = self._run(method)
        if status not in _verdicts():  # interior point may stop before it is precise
            self._solver.clearSolver()
            status = self._run("simplex")
        self._judge(status in _verdicts())
        if status != Status.kOptimal:
            return None
        solution = self._solver.getSolution()
        cost = float(self._solver.getInfo().objective_function_value)
        return Optimum(np.array(solution.col_value), np.array(solution.row_dual), cost)

    def best_whole(self, effort: Effort) -> Floats | None:
        """Return the best whole x that is found with this effort; None if none is found."""
        from highspy import HighsModelStatus as Status
        from highspy import HighsVarType as Kind

        self._set("mip_rel_gap", effort.gap)
        self._set("mip_abs_gap", effort.least_gap)
        self._set("mip_max_nodes", effort.nodes)
        self._make(Kind.kInteger)
        status = self._run("choose")
        self._judge(status in (*_verdicts(), Status.kSolutionLimit))
        found = np.isfinite(self._solver.getInfo().objective_function_value)
        some = status in (Status.kOptimal, Status.kSolutionLimit) and found
        x = np.array(self._solver.getSolution().col_value) if some else None
        self._make(Kind.kContinuous)
        return x

    def _run(self, method: Method) -> HighsModelStatus:
        self._set("solver", method)
        self._solver.run()
        return self._solver.getModelStatus()

    def _judge(self, clear: bool) -> None:
        if not clear:
            said = self._solver.modelStatusToString(self._solver.getModelStatus())
            raise SolverError(f"the solver ends without a verdict; it says: {said}")

    def _make(self, kind: HighsVarType) -> None:
        """Make all variables whole or not."""
        count = self._solver.getNumCol()
        kinds = np.full(count, int(kind), dtype=np.uint8)
        self._accept(self._solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds))

    def _set(self, option: str, value: float | str) -> None:
        self._accept(self._solver.setOptionValue(option, value))

    def _accept(self, status: object) -> None:
        """HiGHS warns of entries that are too small to count; an error is a mistake in the program."""
        from highspy import HighsStatus

        if status == HighsStatus.kError:
            raise SolverError("the solver refuses the program: a number in it is NaN or too large")


def _verdicts() -> tuple[HighsModelStatus, ...]:
    """What the solver says of a program that it has solved."""
    from highspy import HighsModelStatus as Status

    return (Status.kOptimal, Status.kInfeasible, Status.kUnbounded, Status.kUnboundedOrInfeasible)


def _variables(cost: Floats, upper: Floats, at_most: Rows, equal: Rows) -> Variables:
    """Sort the entries of both matrices, one above the other, by column; add up those of one place."""
    rows, above = at_most.limit.size + equal.limit.size, at_most.limit.size
    row = np.concatenate([at_most.row, equal.row + above])
    place = np.concatenate([at_most.column, equal.column]) * rows + row
    order = place.argsort(kind="stable")
    entry, place = np.concatenate([at_most.entry, equal.entry])[order], place[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    entry = np.add.reduceat(entry, first) if first.size else entry
    start = np.searchsorted(place[first], np.arange(cost.size) * rows)
    return Variables(cost, upper, start, place[first] % max(rows, 1), entry)
