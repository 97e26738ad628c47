"""Jobs that all compete at one moment, by the paper's formula: speeds of the zoo on K80, P100 and V100.

The authors' instances are not public. Speeds vary by 10 % around the zoo's, durations are as in Gavel's
traces (four in five take 10^U(1.5, 3) minutes on one V100, the others 10^U(3, 4)), a job's global batch is
that of four workers, workers have a link of 10 Gb/s, and there are equally many of each type.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.zoo import FOR_OLDER_GPUS, ZOO
from trainyard.policy.types.market.costs import Costs, plain_costs
from trainyard.policy.types.market.rings import Rings, ring_jobs
from trainyard.trace.gavel_times import draw_log_minutes

TYPES = ("K80", "P100", "V100")
JITTER = 0.1
BATCHES = 4  # of one worker in a global batch
GBPS = 10.0


class Instance(NamedTuple):
    """A market to be cleared."""

    rings: Rings
    costs: Costs


def instance(jobs: int, workers: int, seed: int, most: int, types: int = 3, gbps: float = GBPS) -> Instance:
    """Draw one; with other than three types the speeds lie between those of the three."""
    rng = np.random.default_rng((seed, jobs, workers))
    speeds, batch, gradient_bytes = _models()
    pick = rng.integers(0, len(batch), jobs)
    rho = np.stack([np.interp(np.linspace(0, 2, types), (0, 1, 2), row) for row in speeds[pick]])
    rho *= rng.uniform(1 - JITTER, 1 + JITTER, rho.shape)
    iterations = 60 * 10 ** draw_log_minutes(jobs, rng) * rho[:, -1] / batch[pick]
    rings = ring_jobs(rho, batch[pick], iterations, gradient_bytes[pick], gbps * 1e9 / 8, most)
    capacity: Ints = np.full(types, workers // types, dtype=np.int64)
    capacity[: workers % types] += 1
    return Instance(rings, plain_costs(rings, jobs, capacity))


def _models() -> tuple[Floats, Floats, Floats]:
    """Samples/s on each type, global batch and gradient bytes of the zoo's models that fit on a K80."""
    rows = []
    for name in sorted(ZOO):
        profile = ZOO[name].profile
        if profile.compute is not None and profile.sync is not None and name in FOR_OLDER_GPUS:
            seconds = [profile.compute.per_sample_s[t] for t in TYPES]
            rows.append([*(1 / s for s in seconds), BATCHES * profile.batch, profile.sync.gradient_mb * 1e6])
    table = np.array(rows)
    return table[:, :3], table[:, 3], table[:, 4]
