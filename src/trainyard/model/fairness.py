"""Fairness: how evenly are values spread?"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats


def jain(values: Floats) -> Floats:
    """Jain's index along the last axis, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all.

    No values, or only zeros, count as equal.
    """
    square = values.sum(axis=-1) ** 2
    squares = values.shape[-1] * (values**2).sum(axis=-1)
    return np.where(squares == 0, 1.0, square / np.where(squares == 0, 1.0, squares))
