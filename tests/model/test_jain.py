"""Jain's index on examples with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from trainyard.model.fairness import jain


def test_equal_parts_are_fair_and_one_with_everything_is_not():
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain(np.array([1.0, 0.0])) == 0.5
    assert jain(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(1 / 4)


def test_nobody_and_nothing_count_as_equal():
    assert jain(np.zeros(0)) == jain(np.zeros(3)) == 1.0


def test_many_at_once_are_as_one_by_one():
    rows = np.random.default_rng(1).uniform(0, 9, (5, 4))
    assert jain(rows).tolist() == [float(jain(row)) for row in rows]
