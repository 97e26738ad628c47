"""Measured tables: exact where measured, bounded by the box, never negative."""

import numpy as np
import pytest

from trainyard.model.speed.tables import table_of


def ask(rows, x, y):
    return table_of(rows).at(np.array([float(x)]), np.array([float(y)]))[0]


def test_one_line_is_piecewise_linear_and_clamped():
    rows = [(1, 0, 10), (4, 0, 30), (2, 0, 20)]
    assert [ask(rows, w, 0) for w in (0, 1, 2, 3, 4, 9)] == [10, 10, 20, 25, 30, 30]
    assert ask(rows, 3, 5) == 25


def test_a_full_grid_is_bilinear():
    rows = [(x, y, 10 * x + y + x * y) for x in (1, 2, 4) for y in (0, 3)]
    assert [ask(rows, *row[:2]) for row in rows] == [row[2] for row in rows]
    assert ask(rows, 3, 1) == pytest.approx(10 * 3 + 1 + 3)
    assert ask(rows, 99, 99) == 10 * 4 + 3 + 12


def test_scattered_points_are_exact_and_never_negative():
    rng = np.random.default_rng(3)
    rows = [(float(w), float(p), float(rng.uniform(0, 50))) for w in range(1, 9) for p in range(1, 10 - w)]
    for w, p, speed in rows:
        assert ask(rows, w, p) == pytest.approx(speed, abs=1e-9)
    x, y = rng.uniform(0, 12, (2, 500))
    assert (table_of(rows).at(x, y) >= 0).all()


def test_scattered_points_follow_the_radial_basis_function():
    points = np.array([[1, 1], [1, 3], [2, 2]], dtype=float)
    speeds = np.array([1.0, 2.0, 4.0])
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    weights = np.linalg.solve(distance, speeds)
    asked = np.array([1.5, 2.5])
    by_hand = np.linalg.norm(points - asked, axis=1) @ weights
    rows = [(*point, speed) for point, speed in zip(points, speeds, strict=True)]
    assert ask(rows, *asked) == pytest.approx(by_hand)


def test_points_measured_twice_count_with_their_mean():
    assert ask([(1, 0, 10), (1, 0, 20), (2, 0, 40)], 1, 0) == 15
