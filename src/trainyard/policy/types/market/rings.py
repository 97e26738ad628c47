"""Completion times by the paper's formula: J(c) = work / speed of all workers + what their number costs.

With the batch split in proportion to the workers' speeds, an iteration of a ring job with worker counts c
takes P / sum(c x rho) + 2 (n - 1) / n x D / r. So all that matters of c is its speed and its size n = sum(c),
which is what makes markets possible: inside a size everything is convex, and linear in prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import SAMPLES


@dataclass(frozen=True, slots=True)
class Rings:
    """S jobs on M GPU types: J_i(c) = work_i / (rho_i . c) + extra_i[n]."""

    rho: Floats  # (S, M): samples/s of one worker; 0: it cannot run there
    work: Floats  # (S,): samples left
    extra: Floats  # (S, most + 1): seconds that n workers spend besides computing; infinite where not allowed

    @property
    def most(self) -> int:
        """Largest number of workers that any job may have."""
        return int(self.extra.shape[1]) - 1

    def seconds(self, jobs: Ints, configs: Ints) -> Floats:
        """Completion time of each of some jobs with its workers by type."""
        rho, n = self.rho[jobs], configs.sum(axis=1)
        speed: Floats = (rho * configs).sum(axis=1)
        took: Floats = np.divide(self.work[jobs], speed, out=np.full(len(speed), np.inf), where=speed > 0)
        took += self.extra[jobs, np.minimum(n, self.most)]
        took[((configs > 0) & (rho <= 0)).any(axis=1) | (n > self.most)] = np.inf
        return took


def ring_jobs(
    rho: Floats, batch: Floats, iterations: Floats, gradient_bytes: Floats, bandwidth: float, most: int
) -> Rings:
    """Build the paper's jobs: P = batch, T = iterations left, D = gradient bytes, r = bytes/s of every link.

    No job gets more workers than its batch has samples: a worker would have nothing to do.
    """
    n = np.arange(most + 1, dtype=np.float64)
    passes = 2.0 * (n - 1.0) / np.maximum(n, 1.0)
    extra: Floats = iterations[:, None] * (gradient_bytes[:, None] / bandwidth) * passes
    extra[:, 0] = np.inf
    extra[n > batch[:, None]] = np.inf
    return Rings(rho, np.maximum(iterations * batch, SAMPLES), extra)
