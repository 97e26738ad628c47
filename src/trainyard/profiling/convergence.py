"""How long a job trains: its loss so far as a curve, and the epoch at which that has come to rest.

    loss(k) = 1 / (b0 k + b1) + b2        none negative, after k epochs (Optimus, EuroSys 2018)

With b2 fixed the curve is a line, 1 / (loss - b2) = b0 k + b1, so the best of a grid of b2 between zero and
the least loss is where the search starts. From there the curve is made linear in all three around what it is
(Gauss-Newton) and solved by non-negative least squares, again and again. Later points count more, and those
far off the others are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Mask
from trainyard.profiling.least_squares import nonnegative

LEAST_POINTS = 3
THIRDS = (1.0, 4.0, 16.0)  # what a squared error weighs in the first, second and last third
GRID = np.geomspace(1.0, 1e-3, 16)  # how far below the least loss b2 is, in parts of it
SCANS = 2  # the later one closer around the best
ROUNDS = 8
SHARES = np.array([0.0, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0])  # of a step: the best is taken
SETTLED, LEAST_COST = 1e-3, 1e-16  # a round that helps less is the last
REACH = 3  # neighbours on each side
REJECT_FROM = 8  # of fewer points none is left out
FAR = 5.0  # times the usual error
LEAST_SCALE = 1e-3  # of the largest loss: smaller errors say nothing against a curve
RIDGE = 1e-7  # decides between curves that the points cannot tell apart
LEAST = 1e-9  # stands for zero where one divides by it

Epochs = TypeVar("Epochs", float, Floats)


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss over epochs."""

    b0: float
    b1: float
    b2: float

    def loss(self, epochs: Epochs) -> Epochs:
        """Loss after a number of epochs."""
        return 1 / (self.b0 * epochs + self.b1) + self.b2


def fit_curve(epochs: Floats, losses: Floats) -> Curve:
    """Fit the curve to the losses seen, three or more."""
    if len(losses) < LEAST_POINTS:
        raise InputError(f"{len(losses)} losses are too few for a curve; give at least {LEAST_POINTS}")
    order = np.argsort(epochs, kind="stable")
    largest = max(float(np.abs(losses).max()), LEAST)
    b0, b1, b2 = _fit(epochs[order], losses[order] / largest).tolist()
    return Curve(b0 / largest, max(b1, LEAST) / largest, b2 * largest)


def epochs_to_converge(curve: Curve, window: int, drop: float, cap: int) -> int:
    """First epoch whose loss is less than `drop` below that of `window` epochs before; at most `cap`."""
    fall = curve.b0 * window
    if fall <= 0:
        return min(window, cap)
    # With u = b0 k + b1 the loss has dropped by fall / ((u - fall) u), which is below for all larger u.
    rest = (fall + math.sqrt(fall * fall + 4 * fall / drop)) / 2
    last = (rest - curve.b1) / curve.b0
    return min(cap, math.floor(min(max(last, window - 1), cap)) + 1)


def _fit(epochs: Floats, losses: Floats) -> Floats:
    """Find the three numbers of the curve for losses of at most one, in order of epochs."""
    count = len(losses)
    thirds = np.array(THIRDS)[np.arange(count) * 3 // count]
    # A first loss far above the others may be wrong, or tell how steeply they fall: try both.
    trusted = [thirds] if count < REJECT_FROM else [thirds, thirds * _near(losses - _smooth(losses))]
    found = _likelier([_start(epochs, losses, weights) for weights in trusted], epochs, losses, thirds)
    for _ in range(ROUNDS):
        weights = thirds * _near(_errors(found, epochs, losses))
        found, helped = _improved(found, epochs, losses, weights)
        if not helped:
            break
    return found


def _likelier(found: list[Floats], epochs: Floats, losses: Floats, weights: Floats) -> Floats:
    """Return the curve nearest to the points, where one that is far off counts as no more than that."""
    squares = [_errors(one, epochs, losses) ** 2 for one in found]
    far = FAR**2 * min(_usual(one) for one in squares)
    return found[int(np.argmin([weights @ np.minimum(one, far) for one in squares]))]


def _smooth(losses: Floats) -> Floats:
    """Medians with neighbours: a loss among falling ones is the median of them, unless it is far off."""
    padded = np.pad(losses, REACH, mode="reflect")
    medians: Floats = np.sort(sliding_window_view(padded, 2 * REACH + 1), axis=1)[:, REACH]
    return medians


def _near(errors: Floats) -> Mask:
    """Tell which points are not far off."""
    squares = errors**2
    return (squares <= FAR**2 * _usual(squares)) | (len(errors) < REJECT_FROM)


def _usual(squares: Floats) -> float:
    """Return the variance that the median of squared errors stands for."""
    return max(LEAST_SCALE**2, 1.4826**2 * float(np.sort(squares)[len(squares) // 2]))


def _start(epochs: Floats, losses: Floats, weights: Floats) -> Floats:
    """Return the best line over grids of b2."""
    least = max(float(losses[weights > 0].min()), 0.0)
    b2 = least - least * GRID
    for _ in range(SCANS):
        above = np.maximum(losses - b2[:, None], LEAST)
        worth = weights * (above * above) ** 2  # of an error of the inverse, so that those of the loss count
        tried = np.stack([*_lines(epochs, 1 / above, worth), b2])
        best = int(np.argmin(_errors(tried[:, :, None], epochs, losses) ** 2 @ weights))
        b2 = np.linspace(b2[max(best - 1, 0)], b2[min(best + 1, len(b2) - 1)], len(b2))
    return tried[:, best]


def _lines(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Slopes and heights, none negative, of the lines through each row of y."""
    total, sum_x, sum_xx = weights.sum(axis=1), weights @ x, weights @ (x * x)
    sum_y, sum_xy = (weights * y).sum(axis=1), (weights * y) @ x
    spread = np.maximum(total * sum_xx - sum_x**2, LEAST * total * sum_xx)
    slope = (total * sum_xy - sum_x * sum_y) / spread
    steepest = sum_xy / sum_xx
    slope = np.clip(slope, 0.0, steepest)
    return slope, np.maximum((sum_y - slope * sum_x) / total, 0.0)


def _improved(found: Floats, epochs: Floats, losses: Floats, weights: Floats) -> tuple[Floats, bool]:
    """Take the best share of a step of Gauss-Newton; tell whether another is worth while."""
    fall = _falls(found, epochs)
    slope = fall * fall
    rows = np.stack([slope * epochs, slope, -np.ones(len(fall))], axis=1)
    root = np.sqrt(weights)
    aim = nonnegative(rows * root[:, None], (2 * fall - losses) * root, RIDGE)
    tried = found[:, None] + (aim - found)[:, None] * SHARES
    costs = _errors(tried[:, :, None], epochs, losses) ** 2 @ weights
    best = int(np.argmin(costs))
    return tried[:, best], bool(costs[0] - costs[best] > SETTLED * costs[0] + LEAST_COST)


def _falls(found: Floats, epochs: Floats) -> Floats:
    """What the loss has still to fall."""
    falls: Floats = 1 / np.maximum(found[0] * epochs + found[1], LEAST)
    return falls


def _errors(found: Floats, epochs: Floats, losses: Floats) -> Floats:
    errors: Floats = losses - found[2] - _falls(found, epochs)
    return errors
