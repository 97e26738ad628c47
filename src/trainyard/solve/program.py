"""Linear and integer programs, by HiGHS through SciPy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints


class Rows(NamedTuple):
    """Constraints: a sparse matrix as (row, column, entry), and one limit per row."""

    row: Ints
    column: Ints
    entry: Floats
    limit: Floats


class Effort(NamedTuple):
    """When to stop looking for a better integer solution; never by the clock: the same answer every time."""

    gap: float = 0.0  # to the optimum, relative
    nodes: int | None = None  # of the search tree


NO_ROWS = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def maximise(
    gain: Floats,
    at_most: Rows,
    equal: Rows,
    upper: Floats,
    integer: bool = False,
    effort: Effort = Effort(),  # noqa: B008 - a constant
) -> Floats | None:
    """Return the best x with 0 <= x <= upper, a vertex of the feasible set; None if there is none."""
    # Half a second of start-up that only these policies need.
    from scipy.optimize import LinearConstraint, linprog, milp
    from scipy.sparse import csr_array

    if not gain.size:
        return np.zeros(0)
    a_ub, a_eq = (
        csr_array((rows.entry, (rows.row, rows.column)), shape=(rows.limit.size, gain.size))
        for rows in (at_most, equal)
    )
    bounds = np.column_stack([np.zeros(gain.size), upper])
    if integer:
        rows = [LinearConstraint(a_ub, ub=at_most.limit)] if at_most.limit.size else []
        rows += [LinearConstraint(a_eq, equal.limit, equal.limit)] if equal.limit.size else []
        limits = {"mip_rel_gap": effort.gap} | ({} if effort.nodes is None else {"node_limit": effort.nodes})
        with _silence():
            answer = milp(
                -gain, integrality=np.ones(gain.size), bounds=bounds.T, constraints=rows, options=limits
            )
        best: Floats | None = answer.x  # of a search that was cut short, the best so far
        return best
    # Interior point with crossover to a vertex: 2 to 8 times as fast as simplex on these.
    program = (-gain, a_ub, at_most.limit, a_eq, equal.limit, bounds)
    answer = linprog(*program, method="highs-ipm")
    x: Floats | None = answer.x if answer.status == 0 else None
    return x


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what HiGHS prints of some integer programs, whatever its options say, out of standard output."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
