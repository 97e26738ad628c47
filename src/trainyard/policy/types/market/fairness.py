"""How fair is an assignment? Completion times against those with an equal share of the cluster."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.types.market.costs import Seconds
from trainyard.policy.types.market.rings import Rings


def equal_share_s(rings: Rings, capacity: Ints) -> Floats:
    """Completion times with a fraction 1/S of every type's workers, for jobs of the paper's formula."""
    jobs = len(rings.work)
    size = max(1.0, float(capacity.sum()) / jobs)
    low, high = int(np.floor(size)), int(np.ceil(size))
    extra = rings.extra[:, np.minimum([low, high], rings.most)]
    between: Floats = extra[:, 0] + (extra[:, 1] - extra[:, 0]) * (size - low)
    share: Floats = rings.work / (rings.rho @ (capacity / jobs))
    return share + between


def equal_whole_share_s(times: Seconds, jobs: Ints, capacity: Ints, sharers: Floats) -> Floats:
    """Completion times with the cluster shared equally among the jobs, type by type.

    Where that is less than one worker of each type, the fraction of the time that would buy one.
    """
    best = np.full(len(jobs), np.inf)
    for t in np.flatnonzero(capacity).tolist():
        part = capacity[t] / np.maximum(sharers, 1.0)
        size = np.clip(np.floor(part), 1, None).astype(np.int64)
        configs = np.zeros((len(jobs), len(capacity)), dtype=np.int64)
        configs[:, t] = size
        took = times.seconds(jobs, configs) * np.maximum(size / part, 1.0)
        best = np.where(np.isfinite(took), np.minimum(best, took), best)
    return best
