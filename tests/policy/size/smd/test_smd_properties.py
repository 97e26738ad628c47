"""SMD's guarantees on many random jobs and small knapsacks."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from trainyard.policy.size.smd.inner import solve
from trainyard.policy.size.smd.offline import best_numbers, smd_numbers
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    completion_s,
    most_servers,
    most_workers,
    within_limits,
)
from trainyard.policy.size.smd.rounding import Rounding
from trainyard.reproduce.smd.workload import INSTANCE, Workload, smd_jobs
from trainyard.solve.knapsack import exact, frieze_clarke, lp_rounded

FAST = settings(max_examples=40, deadline=None)
JOBS = 1000
SMALL = (4.0, 8.0, 15.0, 10.0)


@cache
def jobs_of(kind, instance=INSTANCE):
    return smd_jobs(Workload(JOBS, kind, 1, instance=instance)).problem


def finest(problem, across=60, up=60):
    """The least tau on a fine grid of (w, p), which covers the region of each job."""
    top = np.maximum(most_workers(problem.demands, np.ones(problem.constant.size)), 1.0)
    least = np.full(top.size, np.inf)
    for part in np.linspace(0, 1, across):
        w = top**part
        highest = np.maximum(most_servers(problem.demands, w), 1.0)
        p = highest[:, None] ** np.linspace(0, 1, up)
        least = np.minimum(least, completion_s(problem, np.repeat(w[:, None], up, 1), p).min(axis=1))
    return least


def anything(seed):
    """Jobs with all six terms, some of them missing, and 1 to 5 resources."""
    rng = np.random.default_rng(seed)
    factors = np.exp(rng.uniform(-3, 5, (7, JOBS))) * (rng.random((7, JOBS)) < 0.7)
    rows = rng.integers(2, 6)
    worker, server = rng.uniform(0.1, 3, (2, JOBS, rows)) * (rng.random((2, JOBS, rows)) < 0.8)
    worker[:, 0], server[:, 1] = 1.0, 1.0
    return Problem(*factors, Demands(worker, server, rng.uniform(2, 60, (JOBS, rows))))


@pytest.mark.parametrize("eps", [0.5, 0.1])
@pytest.mark.parametrize("instance", [SMALL, INSTANCE])
@pytest.mark.parametrize("kind", [True, False])
def test_within_the_guarantee_of_any_pair(kind, instance, eps):
    problem = jobs_of(kind, instance)
    answer = solve(problem, eps)
    check(problem, answer, eps)
    whole = best_numbers(problem)
    least = completion_s(problem, whole.workers, whole.servers)
    tau = completion_s(problem, answer.workers, answer.servers)
    assert np.all(tau[answer.fits] <= (1 + eps) * least[answer.fits])


@pytest.mark.parametrize("seed", range(4))
def test_within_the_guarantee_with_any_terms(seed):
    # A grid of up to four ratios is large: rough steps.
    problem = anything(seed)
    check(problem, solve(problem, 0.6), 0.6)


def check(problem, answer, eps):
    fits = answer.fits
    assert np.array_equal(fits, within_limits(problem.demands, np.ones(JOBS), np.ones(JOBS)))
    assert within_limits(problem.demands, answer.workers, answer.servers)[fits].all()
    assert np.all(answer.workers >= 1)
    assert np.all(answer.servers >= 1)
    tau = completion_s(problem, answer.workers, answer.servers)[fits]
    bound = answer.bound_s[fits]
    assert np.all(bound >= tau * (1 - 1e-8))
    assert np.all(bound <= (1 + eps) * finest(problem)[fits] * (1 + 1e-8))


@pytest.mark.parametrize("kind", [True, False])
def test_pruning_and_merging_only_save_work(kind):
    problem = smd_jobs(Workload(60, kind, 2, instance=SMALL)).problem
    plain = solve(problem, 0.5, prune=False)
    assert solve(problem, 0.5).bound_s == pytest.approx(plain.bound_s, rel=1e-12)
    least = finest(problem)
    apart = solve(problem, 0.5, merge=False)
    assert apart.bound_s == pytest.approx(solve(problem, 0.5, merge=False, prune=False).bound_s, rel=1e-12)
    assert np.all(apart.bound_s[apart.fits] <= 1.5 * least[apart.fits])


@pytest.mark.parametrize("kind", [True, False])
def test_whole_numbers_are_near_the_best(kind):
    problem = jobs_of(kind)
    best, ours = best_numbers(problem), smd_numbers(problem, Rounding(np.random.default_rng(1)))
    ratio = completion_s(problem, *ours[:2])[ours.fits] / completion_s(problem, *best[:2])[ours.fits]
    assert ratio.min() >= 1 - 1e-12
    assert ratio.mean() < 1.01
    assert ratio.max() < 1.1


@st.composite
def knapsacks(draw, most=7):
    """Few jobs, small whole numbers, capacities from too little to plenty."""
    n, resources = draw(st.integers(0, most)), draw(st.integers(1, 3))
    numbers = st.integers(0, 9)
    values = draw(st.lists(numbers, min_size=n, max_size=n))
    weights = draw(
        st.lists(st.lists(numbers, min_size=resources, max_size=resources), min_size=n, max_size=n)
    )
    capacity = draw(st.lists(st.integers(0, 25), min_size=resources, max_size=resources))
    table = np.array(weights, dtype=float).reshape(n, resources)
    return np.array(values, dtype=float), table, np.array(capacity, dtype=float)


def brute_force(values, weights, capacity):
    best = 0.0
    for chosen in product([False, True], repeat=values.size):
        mask = np.array(chosen, dtype=bool)
        if np.all(weights[mask].sum(axis=0) <= capacity):
            best = max(best, values[mask].sum())
    return best


def relaxed(values, weights, capacity):
    """The value of the linear program over those that fit."""
    fit = (weights <= capacity).all(axis=1)
    if not fit.any():
        return 0.0
    return -linprog(-values[fit], weights[fit].T, capacity, bounds=(0, 1), method="highs-ds").fun


def keeps_to(chosen, weights, capacity):
    return np.all(weights[chosen].sum(axis=0) <= capacity * (1 + 1e-9))


@FAST
@given(knapsacks())
def test_exact_is_what_trying_everything_finds(case):
    values, weights, capacity = case
    chosen = exact(values, weights, capacity)
    assert keeps_to(chosen, weights, capacity)
    assert values[chosen].sum() == brute_force(values, weights, capacity)


@FAST
@given(knapsacks(most=5), st.integers(1, 2))
def test_the_approximation_scheme_keeps_its_promise(case, k):
    values, weights, capacity = case
    chosen = frieze_clarke(values, weights, capacity, k)
    assert keeps_to(chosen, weights, capacity)
    best = brute_force(values, weights, capacity)
    assert values[chosen].sum() >= k / (k + capacity.size) * best - 1e-9


@settings(max_examples=15, deadline=None)
@given(knapsacks(most=4))
def test_with_sets_of_any_size_the_scheme_is_exact(case):
    values, weights, capacity = case
    chosen = frieze_clarke(values, weights, capacity, values.size)
    assert values[chosen].sum() == brute_force(values, weights, capacity)


@FAST
@given(knapsacks())
def test_the_rounded_program_loses_few_jobs(case):
    values, weights, capacity = case
    chosen = lp_rounded(values, weights, capacity)
    assert keeps_to(chosen, weights, capacity)
    lost = np.sort(values)[::-1][: capacity.size].sum()
    assert values[chosen].sum() >= relaxed(values, weights, capacity) - lost - 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_larger_knapsacks(seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.uniform(1, 100, 40), rng.uniform(1, 20, (40, 4))
    capacity = 0.3 * weights.sum(axis=0)
    bound = relaxed(values, weights, capacity)
    best = values[exact(values, weights, capacity)].sum()
    assert best <= bound * (1 + 1e-9)
    rounded = lp_rounded(values, weights, capacity)
    assert keeps_to(rounded, weights, capacity)
    assert bound - np.sort(values)[-4:].sum() - 1e-6 <= values[rounded].sum() <= best + 1e-6
    scheme = frieze_clarke(values, weights, capacity, 1)
    assert best / 5 <= values[scheme].sum() <= best + 1e-6
