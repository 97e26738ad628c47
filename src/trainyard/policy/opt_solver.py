"""Linear programs, by HiGHS through SciPy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from trainyard.model.cluster import Floats, Ints


class Rows(NamedTuple):
    """Constraints: a sparse matrix as (row, column, entry), and one limit per row."""

    row: Ints
    column: Ints
    entry: Floats
    limit: Floats


def maximise(gain: Floats, at_most: Rows, equal: Rows, upper: Floats, integer: bool = False) -> Floats | None:
    """Return the best x with 0 <= x <= upper, a vertex of the feasible set; None if there is none."""
    from scipy.optimize import linprog  # half a second of start-up that only these policies need
    from scipy.sparse import csr_array

    if not gain.size:
        return np.zeros(0)
    a_ub, a_eq = (
        csr_array((rows.entry, (rows.row, rows.column)), shape=(rows.limit.size, gain.size))
        for rows in (at_most, equal)
    )
    bounds = np.column_stack([np.zeros(gain.size), upper])
    program = (-gain, a_ub, at_most.limit, a_eq, equal.limit, bounds)
    if integer:
        with _silence():
            answer = linprog(
                *program, method="highs", integrality=np.ones(gain.size), options={"mip_rel_gap": 0.0}
            )
    else:
        # Interior point with crossover to a vertex: 2 to 8 times as fast as simplex on these.
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
