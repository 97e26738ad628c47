"""Measured speeds at some points, and what they say in between.

Points that fill a rectangular grid (or lie on one line of it) are interpolated linearly in both directions.
Other points get a linear radial basis function: weights c with sum_i c_i |x_j - x_i| = speed_j at every
measured point j, so it is exact there, and never below zero elsewhere. Outside the measured box the nearest
point of the box counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from trainyard.model.arrays import Floats, Ints

Row = tuple[float, float, float]


class Table(Protocol):
    """Speeds over two axes."""

    def at(self, x: Floats, y: Floats) -> Floats:
        """Interpolated speed at each (x, y)."""
        ...


def table_of(rows: Sequence[Row]) -> Table:
    """Choose the interpolation that fits the points; points measured more than once count with their mean."""
    points, speeds = _merged(rows)
    xs, ys = np.unique(points[:, 0]), np.unique(points[:, 1])
    if len(points) == len(xs) * len(ys):
        return _Grid(xs, ys, speeds.reshape(len(xs), len(ys)))
    return _Scattered(points, speeds)


def _merged(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    table = np.array(rows, dtype=np.float64)
    points, which = np.unique(table[:, :2], axis=0, return_inverse=True)
    which = which.reshape(-1)
    return points, np.bincount(which, weights=table[:, 2]) / np.bincount(which)


class _Grid:
    """A full grid, linear between its lines."""

    def __init__(self, xs: Floats, ys: Floats, speeds: Floats) -> None:
        self._xs, self._ys, self._speeds = xs, ys, speeds

    def at(self, x: Floats, y: Floats) -> Floats:
        """Interpolated speed at each (x, y)."""
        i, u = _place(self._xs, x)
        j, v = _place(self._ys, y)
        i1, j1 = np.minimum(i + 1, len(self._xs) - 1), np.minimum(j + 1, len(self._ys) - 1)
        low: Floats = self._speeds[i, j] * (1 - u) + self._speeds[i1, j] * u
        high: Floats = self._speeds[i, j1] * (1 - u) + self._speeds[i1, j1] * u
        return low * (1 - v) + high * v


def _place(axis: Floats, x: Floats) -> tuple[Ints, Floats]:
    """Line of the axis at or below x, and how far x is towards the next."""
    x = np.clip(x, axis[0], axis[-1])
    i = np.searchsorted(axis, x, side="right") - 1
    step = axis[np.minimum(i + 1, len(axis) - 1)] - axis[i]
    return i, np.where(step > 0, (x - axis[i]) / np.where(step > 0, step, 1.0), 0.0)


class _Scattered:
    """Points anywhere: a linear radial basis function."""

    def __init__(self, points: Floats, speeds: Floats) -> None:
        self._points = points
        self._low, self._high = points.min(axis=0), points.max(axis=0)
        self._weights = np.linalg.solve(_distance(points[:, 0], points[:, 1], points), speeds)

    def at(self, x: Floats, y: Floats) -> Floats:
        """Interpolated speed at each (x, y)."""
        x, y = np.clip(x, self._low[0], self._high[0]), np.clip(y, self._low[1], self._high[1])
        # Not a matrix product: a row's result must not depend on how many rows are asked for.
        speeds: Floats = (_distance(x, y, self._points) * self._weights).sum(axis=1)
        return np.maximum(speeds, 0.0)


def _distance(x: Floats, y: Floats, points: Floats) -> Floats:
    return np.hypot(x[:, None] - points[:, 0], y[:, None] - points[:, 1])
