"""Speed over workers: curves on which doubling and "one more worker" behave differently.

    trap             w^e at powers of two, 0.8 times the last power of two's elsewhere
    power law        w^e: smooth, every worker helps
    small gradients  all-reduce without the ring: halving-doubling at powers of two, binary blocks elsewhere
    large gradients  the same with gradients so large that two workers may be slower than one
    ring allowed     gradients of any size, by the ring wherever it is quicker

The batch of a worker is fixed, so w workers do w times the samples in a step of c + all-reduce.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Algorithm, Sync
from trainyard.model.speed.allreduce import allreduce_s, floor_log2

GBPS = 8.0  # a nanosecond per byte
LATENCY_S, REDUCE_S_PER_GB = 1e-4, 0.1
COMPUTE_S = (0.05, 0.5)
SMALL_MB, LARGE_MB = (0.1, 10.0), (1.0, 200.0)
OFF_POWER = 0.8
TRAP_EXPONENT = 0.9


def draw_curve(kind: str, rng: np.random.Generator, most: int) -> Floats:
    """Return the speed with 1 to `most` workers, one worker's being 1."""
    speed = CURVES[kind](rng, np.arange(1, most + 1))
    relative: Floats = speed / speed[0]
    return relative


def trap(workers: Ints, exponent: float = TRAP_EXPONENT) -> Floats:
    """Return speeds that fall behind every power of two."""
    below = 2.0 ** floor_log2(workers)
    speed: Floats = np.where(workers == below, 1.0, OFF_POWER) * below**exponent
    return speed


def _step_s(rng: np.random.Generator, workers: Ints, mb: tuple[float, float], *ways: Algorithm) -> Floats:
    """Seconds of a step by the quickest of the ways."""
    gradient_mb = float(np.exp(rng.uniform(*np.log(mb))))
    gbps = np.full(workers.size, GBPS)
    talk_s: Floats = np.minimum.reduce([allreduce_s(_sync(way), gradient_mb, workers, gbps) for way in ways])
    return rng.uniform(*COMPUTE_S) + talk_s


def _sync(way: Algorithm) -> Sync:
    return Sync(latency_s=LATENCY_S, algorithm=way, cost_preset="capes", reduce_s_per_gb=REDUCE_S_PER_GB)


CURVES: dict[str, Callable[[np.random.Generator, Ints], Floats]] = {
    "trap": lambda rng, w: trap(w, rng.uniform(0.5, 1.0)),
    "power law": lambda rng, w: w.astype(np.float64) ** rng.uniform(0.3, 0.95),
    "small gradients": lambda rng, w: w / _step_s(rng, w, SMALL_MB, "halving-doubling"),
    "large gradients": lambda rng, w: w / _step_s(rng, w, LARGE_MB, "halving-doubling"),
    "ring allowed": lambda rng, w: w / _step_s(rng, w, LARGE_MB, "halving-doubling", "ring"),
}
