"""Non-negative least squares, as all fits here use them."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats


def nonnegative(rows: Floats, goal: Floats, ridge: float | Floats) -> Floats:
    """Solve rows x unknowns = goal by least squares, no unknown negative; a ridge pulls idle ones to zero."""
    from scipy.optimize import nnls

    length = np.sqrt((rows**2).sum(axis=0))
    length[length == 0] = 1.0
    pull = ridge * np.eye(len(length))
    solved, _ = nnls(np.vstack([rows / length, pull]), np.concatenate([goal, np.zeros(len(length))]))
    unknowns: Floats = solved / length
    return unknowns
