"""Utilities of completion times."""

from __future__ import annotations

import numpy as np
import pytest

from trainyard.policy.size.smd.utility import Deadline, Inverse, Linear, Sigmoid

TIMES = np.array([0.0, 0.5, 1.0, 2.0, 5.0, 1e3, 1e9, np.inf])


@pytest.mark.parametrize("utility", [Sigmoid(50.0, 5.0, 2.0), Inverse(2.0), Linear(4.0), Deadline(2.0)])
def test_later_is_never_worth_more(utility):
    with np.errstate(all="raise", under="ignore"):
        worth = utility(TIMES)
    assert np.all(np.diff(worth) <= 0)
    assert np.all(worth >= 0)
    assert worth[0] > 0
    assert worth[-1] == 0


def test_sigmoid():
    heights, steepness, middles = np.array([10.0, 20.0]), np.array([4.0, 6.0]), np.array([1.0, 3.0])
    worth = Sigmoid(heights, steepness, middles)
    assert worth(middles) == pytest.approx(heights / 2)
    assert worth(np.array([1.5, 2.5])) == pytest.approx([10 / (1 + np.exp(2)), 20 / (1 + np.exp(-3))])


def test_the_others():
    assert Inverse(2.0)(np.array([1.0, 2.0, 4.0])) == pytest.approx([1.0, 1.0, 0.5])
    assert Linear(np.array([4.0, 8.0]))(np.array([1.0, 10.0])) == pytest.approx([0.75, 0.0])
    assert Deadline(3.0)(np.array([3.0, 3.1])).tolist() == [1.0, 0.0]
