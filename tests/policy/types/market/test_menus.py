"""Completion times of the paper's formula, lists of configurations and pricing by formula."""

from __future__ import annotations

import numpy as np
import pytest

from market_cases import LINK, every_config, instance, made, relaxed
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.menus import (
    Lists,
    all_configs,
    grid,
    grid_configs,
    largest_remainder,
    shared_menu,
)
from trainyard.policy.types.market.prices import clear
from trainyard.policy.types.market.samples import Samples, sampled_menu


def listed(case, configs):
    return Lists(case.costs, [shared_menu(case.costs, case.jobs, configs)])


def test_seconds_are_those_of_the_equation():
    case = instance(3, 9, seed=0)
    for config in every_config(case.capacity):
        if config.sum() <= case.rings.most:
            took = case.rings.seconds(case.jobs, np.tile(config, (3, 1)))
            assert took == pytest.approx([case.seconds(i, config) for i in range(3)])


@pytest.mark.parametrize(("gradient", "helps"), [(0.0, True), (1e8, True), (0.49e9, True), (0.51e9, False)])
def test_2_more_workers_help_only_if_computing_takes_longer_than_two_passes(gradient, helps):
    per_worker_s = 2 * 0.5e9 / LINK  # of a batch on one worker: as long as sending 0.5 GB twice
    case = made([[100 / per_worker_s]], [100], [1000], [gradient], [50])
    took = case.rings.seconds(np.zeros(50, dtype=int), np.arange(1, 51)[:, None])
    steps = np.diff(took)
    assert (steps < 0).all() if helps else (steps > 0).all()
    if helps:
        assert (np.diff(steps) > 0).all()  # ever less: convex


def test_no_more_workers_than_samples():
    case = made([[1.0]], [3], [10], [0.0], [9])
    took = case.rings.seconds(np.zeros(4, dtype=int), np.array([[2], [3], [4], [0]]))
    assert np.isfinite(took).tolist() == [True, True, False, False]


def test_all_configurations_are_listed_once():
    capacity = np.array([2, 0, 3])
    found = all_configs(capacity, 4)
    wanted = [c for c in every_config(capacity).tolist() if sum(c) <= 4]
    assert sorted(found.tolist()) == sorted(wanted)


def test_a_grid_reaches_every_count_within_its_step():
    counts = grid(1000, 0.25)
    for n in range(1, 1001):
        assert counts[counts <= n].max() * 1.25 >= n
    rows = grid_configs(np.array([5, 4, 9]), 12, lambda most: grid(most, 0.25))
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert set(rows.sum(axis=1)) <= set(range(1, 13))


@pytest.mark.parametrize("step", [0.5, 0.25])
@pytest.mark.parametrize("seed", range(3))
def test_9_a_grid_loses_at_most_its_step(step, seed):
    case = instance(6, 30, seed)
    full = relaxed(case)
    sparse = clear(
        case.costs, listed(case, grid_configs(case.capacity, case.rings.most, lambda most: grid(most, step)))
    )
    assert full * (1 - 1e-9) <= sparse.mixture.value <= (1 + step) * full


@pytest.mark.parametrize("seed", range(4))
def test_10_the_formula_bounds_all_configurations_and_prices_as_well(seed):
    case = instance(20, 32, seed)
    full = relaxed(case)
    cleared = clear(case.costs, ClosedForm(case.costs, case.rings))
    assert cleared.bound <= full * (1 + 1e-9)
    assert cleared.mixture.value == pytest.approx(full, rel=1e-6)


@pytest.mark.parametrize("limit", [np.inf, 2000.0])
def test_10_its_bound_holds_at_any_prices(limit):
    case = instance(5, 12, seed=1)
    costs = case.costs.__class__(
        case.rings, case.capacity, np.array([1.0, 2, 0.5, 1, 3]), np.full(5, limit), np.full(5, 30.0),
        case.costs.held, case.costs.held_s, case.costs.wait,
    )  # fmt: skip
    lists = Lists(costs, [shared_menu(costs, case.jobs, all_configs(case.capacity, case.rings.most))])
    g = np.random.default_rng(0)
    for _ in range(30):
        prices = 10 ** g.uniform(-1, 5, 3)
        exact, formula = lists.cheapest(prices), ClosedForm(costs, case.rings).cheapest(prices)
        assert (formula.bound <= exact.bound * (1 + 1e-9)).all()
        paid = formula.cost + formula.configs @ prices
        assert (paid >= exact.bound * (1 - 1e-9)).all()
        assert formula.cost == pytest.approx(costs.of(case.jobs, formula.configs))


def test_what_a_job_holds_is_on_its_list_and_costs_no_restart():
    case = instance(2, 9, seed=0)
    held = np.array([[1, 1, 1], [0, 0, 0]])
    held_s = np.array([case.seconds(0, held[0]), np.inf])
    costs = case.costs.__class__(
        case.rings,
        case.capacity,
        np.ones(2),
        np.full(2, np.inf),
        np.full(2, 1e9),
        held,
        held_s,
        np.full(2, np.inf),
    )
    lists = Lists(costs, [shared_menu(costs, case.jobs, np.eye(3, dtype=np.int64))])
    for pricing in (lists, ClosedForm(costs, case.rings), Samples(costs, lists.menus)):
        offer = pricing.cheapest(np.zeros(3))
        assert offer.configs[0].tolist() == [1, 1, 1]
        assert offer.cost[0] == pytest.approx(case.seconds(0, held[0]))
        assert held[0].tolist() in pricing.within(0, np.zeros(3), np.inf, case.capacity)[0].tolist()


def test_samples_are_within_capacity_and_the_same_for_the_same_seed():
    case = instance(10, 20, seed=0)
    menus = [
        sampled_menu(case.costs, np.full(10, 3.0), 64, case.rings.most, np.random.default_rng(7))
        for _ in "ab"
    ]
    assert (menus[0].configs == menus[1].configs).all()
    assert (menus[0].configs <= case.capacity).all()
    assert (menus[0].configs.sum(axis=2) >= 1).all()


def test_largest_remainder_keeps_the_sum():
    g = np.random.default_rng(0)
    share = g.dirichlet(np.ones(5), 100) * 17
    whole = largest_remainder(share, np.full(100, 17))
    assert (whole.sum(axis=1) == 17).all()
    assert (np.abs(whole - share) < 1).all()
