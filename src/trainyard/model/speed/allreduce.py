"""All-reduce: every worker ends up with the sum of all workers' gradients.

The seconds of one all-reduce of n bytes over w workers are linear in three costs: a, the latency of a
message; b, the seconds per byte on the wire; g, the seconds to reduce a byte. The coefficients are data, in
two presets:

    "thakur"  Thakur, Rabenseifner & Gropp 2005, an exchange in both directions counted once
        ring              2(w-1) a + 2 (w-1)/w n b + (w-1)/w n g
        halving-doubling  2 log2(w) a + 2 (w-1)/w n b + (w-1)/w n g            w a power of two
        binary-blocks     (3 + 2 floor(log2 w)) a + 4 n b + 3/2 n g            other w (2-1 elimination)
    "capes"   Capes et al. 2019
        ring              4(w-1) a + 4 (w-1)/w n b + 2 (w-1)/w n g
        halving-doubling  4 log2(w) a + 4 n b + 5/2 n g                        w a power of two
        binary-blocks     (5 + 4 ceil(log2 w)) a + 7 n b + 3 n g               other w

One worker exchanges nothing: zero. Halving-doubling needs a power of two and turns into binary blocks
elsewhere; binary blocks with a power of two are one block, which is halving-doubling. "auto" takes the ring
for messages of `RING_FROM_BYTES` and more and these two below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Algorithm, CostPreset, Sync

# Capes et al. switch at about 10^7 parameters; four bytes each.
RING_FROM_BYTES = 4e7


@dataclass(frozen=True, slots=True)
class Costs:
    """Coefficients of a (steps), of n b (wire) and of n g (reduce); "shared" ones are x (w-1)/w."""

    steps: float = 0.0
    steps_per_peer: float = 0.0  # x (w-1)
    steps_per_floor_log2: float = 0.0
    steps_per_ceil_log2: float = 0.0
    wire: float = 0.0
    wire_shared: float = 0.0
    reduce: float = 0.0
    reduce_shared: float = 0.0


PRESETS: Mapping[CostPreset, Mapping[str, Costs]] = {
    "thakur": {
        "ring": Costs(steps_per_peer=2, wire_shared=2, reduce_shared=1),
        "halving-doubling": Costs(steps_per_floor_log2=2, wire_shared=2, reduce_shared=1),
        "binary-blocks": Costs(steps=3, steps_per_floor_log2=2, wire=4, reduce=1.5),
    },
    "capes": {
        "ring": Costs(steps_per_peer=4, wire_shared=4, reduce_shared=2),
        "halving-doubling": Costs(steps_per_floor_log2=4, wire=4, reduce=2.5),
        "binary-blocks": Costs(steps=5, steps_per_ceil_log2=4, wire=7, reduce=3),
    },
}


def floor_log2(numbers: Ints) -> Ints:
    """Exact floor(log2) of positive integers below 2^53: the exponent that the float carries."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64) - 1


def ceil_log2(numbers: Ints) -> Ints:
    """Exact ceil(log2) of positive integers below 2^53."""
    return np.where(numbers > 1, floor_log2(np.maximum(numbers - 1, 1)) + 1, 0)


def cost_s(
    costs: Costs, workers: Ints, nbytes: float, latency_s: float, byte_s: Floats, reduce_s: float
) -> Floats:
    """Seconds of one all-reduce by one formula, whatever w is; zero for a single worker."""
    w = np.maximum(workers, 1)
    shared = (w - 1) / w
    steps = costs.steps + costs.steps_per_peer * (w - 1)
    steps = steps + costs.steps_per_floor_log2 * floor_log2(w) + costs.steps_per_ceil_log2 * ceil_log2(w)
    wire = (costs.wire + costs.wire_shared * shared) * nbytes * byte_s
    reduce = (costs.reduce + costs.reduce_shared * shared) * nbytes * reduce_s
    return np.where(workers > 1, steps * latency_s + wire + reduce, 0.0)


def allreduce_s(sync: Sync, gradient_mb: float, workers: Ints, bandwidth_gbps: Floats) -> Floats:
    """Seconds of one all-reduce of the gradients, by the profile's algorithm and preset."""
    nbytes = gradient_mb * 1e6
    presets = PRESETS[sync.cost_preset]
    arguments = (workers, nbytes, sync.latency_s, 8e-9 / bandwidth_gbps, sync.reduce_s_per_gb * 1e-9)
    if _takes_ring(sync.algorithm, nbytes):
        return cost_s(presets["ring"], *arguments)
    halving = cost_s(presets["halving-doubling"], *arguments)
    return np.where(_is_power_of_two(workers), halving, cost_s(presets["binary-blocks"], *arguments))


def _takes_ring(algorithm: Algorithm, nbytes: float) -> bool:
    return algorithm == "ring" or (algorithm == "auto" and nbytes >= RING_FROM_BYTES)


def _is_power_of_two(numbers: Ints) -> npt.NDArray[np.bool_]:
    power: npt.NDArray[np.bool_] = (numbers & (numbers - 1)) == 0
    return power
