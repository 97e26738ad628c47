"""Two simple rules that a market has to beat: the best single worker at a time, and equal shares."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.policy.types.market.costs import Costs


def marginal_gains(costs: Costs) -> Ints:
    """Everybody gets a worker, the fastest types first; then each worker goes where it saves most time."""
    mix: Ints = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    left, every_job = costs.capacity.copy(), np.arange(costs.jobs)
    single = np.stack(
        [costs.of(every_job, np.tile(e, (costs.jobs, 1))) for e in np.eye(costs.types, dtype=np.int64)]
    )
    for job in np.argsort(-single.min(axis=0), kind="stable").tolist():
        t = int(np.where(left > 0, single[:, job], np.inf).argmin())
        mix[job, t] += 1
        left[t] -= 1
    gain = np.stack([_gains(costs, mix, job) for job in every_job.tolist()])
    while (left > 0).any():
        best, which = divmod(int(np.where(left > 0, gain, -np.inf).argmax()), costs.types)
        if gain[best, which] <= 0:
            break
        mix[best, which] += 1
        left[which] -= 1
        gain[best] = _gains(costs, mix, best)
    return mix


def _gains(costs: Costs, mix: Ints, job: int) -> np.typing.NDArray[np.float64]:
    more = mix[job] + np.eye(costs.types, dtype=np.int64)
    who = np.full(costs.types, job)
    return costs.of(np.array([job]), mix[job][None]) - costs.of(who, more)


def equal_shares(costs: Costs, generator: np.random.Generator) -> Ints:
    """As many workers for every_job, of whatever type comes."""
    workers = generator.permutation(np.repeat(np.arange(costs.types), costs.capacity))
    mix: Ints = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    each = len(workers) // costs.jobs
    np.add.at(mix, (np.repeat(np.arange(costs.jobs), each), workers[: each * costs.jobs]), 1)
    return mix
