"""The best division of GPUs among jobs, for small cases: the least sum of their remaining times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainyard.model.arrays import Floats


def least_total_s(sizes: Sequence[Sequence[int]], seconds: Sequence[Sequence[float]], gpus: int) -> float:
    """Return the least sum of seconds when job j has one of `sizes[j]`; infinite if they do not fit.

    `seconds[j][k]` is how long job j takes at size `sizes[j][k]`. Dynamic programming over the capacity:
    jobs x GPUs x sizes steps.
    """
    best: Floats = np.zeros(gpus + 1)
    capacity = np.arange(gpus + 1)[:, None]
    for own, times in zip(sizes, seconds, strict=True):
        left = capacity - np.array(own)
        before = np.where(left >= 0, best[np.maximum(left, 0)], np.inf)
        best = (before + np.array(times)).min(axis=1)
    return float(best[gpus])
