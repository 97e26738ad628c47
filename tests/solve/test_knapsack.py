"""The knapsacks on instances with known answers."""

from __future__ import annotations

import time

import numpy as np
import pytest

from trainyard.solve.knapsack import exact, frieze_clarke, lp_rounded

VALUES = np.array([60.0, 100.0, 120.0, 30.0])
WEIGHTS = np.array([(10.0, 20.0), (20.0, 30.0), (30.0, 10.0), (5.0, 5.0)])
CAPACITY = np.array([50.0, 50.0])


def with_two(values, weights, capacity):
    return frieze_clarke(values, weights, capacity, 2)


ALL = pytest.mark.parametrize("knapsack", [exact, with_two, lp_rounded])


@pytest.mark.parametrize(("k", "worth"), [(1, 210), (2, 220), (3, 220), (4, 220), (9, 220)])
def test_golden(k, worth):
    assert frieze_clarke(VALUES, WEIGHTS, CAPACITY, k) @ VALUES == worth


def test_golden_without_a_set_and_exactly():
    # Which corner the linear program has decides between these.
    assert frieze_clarke(VALUES, WEIGHTS, CAPACITY, 0) @ VALUES in (90, 120, 150, 210)
    assert exact(VALUES, WEIGHTS, CAPACITY).tolist() == [False, True, True, False]


@ALL
def test_nobody_asks(knapsack):
    chosen = knapsack(np.zeros(0), np.zeros((0, 2)), CAPACITY)
    assert chosen.shape == (0,)
    assert chosen.dtype == np.bool_


@ALL
def test_worthless_jobs_and_those_that_never_fit_stay_out(knapsack):
    values = np.array([0.0, 5.0, 1000.0, 7.0])
    weights = np.array([(0.0, 0.0), (1.0, 1.0), (1.0, 51.0), (50.5, 0.0)])
    assert knapsack(values, weights, CAPACITY).tolist() == [False, True, False, False]


@ALL
def test_without_capacity_only_those_that_need_nothing(knapsack):
    weights = np.array([(0.0, 0.0), (1.0, 0.0)])
    assert knapsack(np.ones(2), weights, np.zeros(2)).tolist() == [True, False]
    assert knapsack(np.ones(2), weights, np.array([1.0, 0.0])).tolist() == [True, True]


@ALL
def test_everybody_fits_exactly(knapsack):
    weights = np.full((10, 3), 0.1)
    assert knapsack(np.ones(10), weights, np.ones(3)).all()


def test_the_set_of_most_valuable_jobs_may_fill_a_resource():
    values, weights = np.array([10.0, 4.0, 3.0]), np.array([(5.0, 1.0), (1.0, 1.0), (0.0, 1.0)])
    chosen = frieze_clarke(values, weights, np.array([5.0, 5.0]), 1)
    assert chosen.tolist() == [True, False, True]


def test_thousands_of_jobs_take_no_time():
    rng = np.random.default_rng(1)
    values, weights = rng.uniform(1, 100, 3000), rng.uniform(1, 20, (3000, 4))
    lp_rounded(values[:9], weights[:9], np.full(4, 40.0))  # loads what it needs
    started = time.process_time()
    chosen = lp_rounded(values, weights, 0.3 * weights.sum(axis=0))
    assert time.process_time() - started < 0.3
    assert 0.2 < chosen.mean() < 0.7


@ALL
def test_of_jobs_that_are_alike_the_last_are_taken(knapsack):
    values, weights = np.array([2.0, 3.0, 2.0, 2.0, 3.0]), np.ones((5, 2))
    assert knapsack(values, weights, np.full(2, 3.0)).tolist() == [False, True, False, True, True]


def test_what_is_next_to_nothing_beside_the_others_is_left():
    values, weights = np.array([1.0, 1e-12, 1.0, 0.5]), np.array([[1.0], [1.0], [1.0], [2.0]])
    assert exact(values, weights, np.full(1, 3.0)).tolist() == [True, False, True, False]
