"""Levels without the drift that they have in common.

The speed of a machine changes from second to second, and that of everything on it alike. Speeds that were
measured in one round, right after each other, tell how counts compare, however fast the machine was:

    log speed(round, count) = drift(round) + level(count)

Least squares find both, though counts miss from some rounds; speeds far off count less (Huber). The speed of
a count is its level at the median drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats

FAR = 1.5  # standard deviations
TURNS = 20
LEAST = 1e-9


class Measured(NamedTuple):
    """A speed of a count in a round."""

    round: int
    cpus: float
    samples_per_s: float


class Level(NamedTuple):
    """The speed of a count, and its standard error relative to the other counts."""

    samples_per_s: float
    unsure: float


def without_drift(measured: Sequence[Measured]) -> dict[float, Level]:
    """Return the level of each count."""
    rounds, row = np.unique([one.round for one in measured], return_inverse=True)
    counts, column = np.unique([one.cpus for one in measured], return_inverse=True)
    terms = np.hstack([np.eye(len(rounds))[row], np.eye(len(counts))[column]])
    logs = np.log([one.samples_per_s for one in measured])
    found, weights = _robust(terms, logs)
    drift, level = np.split(found, [len(rounds)])
    speeds = np.exp(level + np.median(drift))
    unsure = _unsure(terms, weights, logs - terms @ found, len(counts))
    return dict(zip(counts.tolist(), map(Level, speeds.tolist(), unsure.tolist()), strict=True))


def _robust(terms: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Solve by least squares, again and again with less weight on what is far off."""
    weights = np.ones(len(logs))
    for _ in range(TURNS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(terms * root[:, None], logs * root, rcond=None)[0].astype(np.float64)
        off = np.abs(logs - terms @ found)
        far = FAR * 1.5 * np.median(off)  # 1.5 median deviations are about a standard deviation
        weights = np.minimum(1.0, (far + LEAST) / (off + LEAST))
    return found, weights


def _unsure(terms: Floats, weights: Floats, off: Floats, levels: int) -> Floats:
    """Return the standard error of each level against the mean of all."""
    if levels == 1:
        return np.zeros(1)
    free = len(terms) - (terms.shape[1] - 1)
    if free < 1:
        return np.full(levels, np.inf)
    variance = np.sum(weights * off**2) / free
    spread = np.linalg.pinv(terms.T @ (terms * weights[:, None]))[-levels:, -levels:] * variance
    against = np.eye(levels) - 1 / levels
    return np.asarray(np.sqrt(np.diag(against @ spread @ against)))
