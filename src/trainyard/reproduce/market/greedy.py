"""Two simple rules that a market has to beat: the best single worker at a time, and equal shares."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.policy.size.growth import Amounts, Growth, grow
from trainyard.policy.types.market.costs import Costs


def marginal_gains(costs: Costs) -> Ints:
    """Everybody gets a worker, the fastest types first; then each worker goes where it saves most time."""
    mix: Ints = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    left, every_job = costs.capacity.copy(), np.arange(costs.jobs)
    ones: Ints = np.eye(costs.types, dtype=np.int64)
    single = np.stack([costs.of(every_job, np.tile(one, (costs.jobs, 1))) for one in ones])
    for job in np.argsort(-single.min(axis=0), kind="stable").tolist():
        t = int(np.where(left > 0, single[:, job], np.inf).argmin())
        mix[job, t] += 1
        left[t] -= 1

    def one_more(job: int, held: Ints, room: Amounts) -> Growth[Ints] | None:
        saves = costs.of(np.array([job]), held[None]) - costs.of(np.full(costs.types, job), held + ones)
        saves = np.where(np.array(room) > 0, saves, -np.inf)
        best, most = int(saves.argmax()), float(saves.max())
        return (-most, tuple(ones[best].tolist()), held + ones[best]) if most > 0 else None

    grown = grow(dict(enumerate(mix)), tuple(left.tolist()), one_more, again=True)
    return np.array([grown[job] for job in every_job.tolist()])


def equal_shares(costs: Costs, generator: np.random.Generator) -> Ints:
    """As many workers for every_job, of whatever type comes."""
    workers = generator.permutation(np.repeat(np.arange(costs.types), costs.capacity))
    mix: Ints = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    each = len(workers) // costs.jobs
    np.add.at(mix, (np.repeat(np.arange(costs.jobs), each), workers[: each * costs.jobs]), 1)
    return mix
