"""What became of each tenant's jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainyard.model.arrays import Floats, Ints


def by_tenant(
    tenant: Sequence[str], jct_s: Floats, queue_s: Floats, gpu_s: Floats
) -> dict[str, dict[str, float]]:
    """Return number of jobs, averages and GPU time of each tenant, by name; jobs of nobody have the name ''.

    Averages are over the same jobs as those of the whole run: completion times over all that ended, waits
    over all that started. Without any they are NaN.
    """
    names = sorted(set(tenant))
    number = {name: i for i, name in enumerate(names)}
    whose: Ints = np.array([number[name] for name in tenant], dtype=np.int64)
    columns = zip(
        np.bincount(whose, minlength=len(names)).tolist(),
        _means(whose, jct_s, len(names)),
        _means(whose, queue_s, len(names)),
        np.bincount(whose, weights=gpu_s, minlength=len(names)).tolist(),
        strict=True,
    )
    return {
        name: {"jobs": jobs, "avg_jct_s": jct, "avg_queue_s": queue, "gpu_s": gpu}
        for name, (jobs, jct, queue, gpu) in zip(names, columns, strict=True)
    }


def _means(whose: Ints, values: Floats, groups: int) -> list[float]:
    known = np.isfinite(values)
    count = np.bincount(whose[known], minlength=groups)
    total = np.bincount(whose[known], weights=values[known], minlength=groups)
    means: Floats = np.full(groups, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    found: list[float] = means.tolist()
    return found
