"""Fairness: equal shares, Jain's index, the cap on finish times, the weighing of both."""

from __future__ import annotations

import numpy as np
import pytest

from market_cases import feasible, instance, made, total_s
from trainyard.model.fairness import jain
from trainyard.policy.types.market.category import Fairness, fair_share_s, search_sampled
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.costs import STEEP, plain_costs
from trainyard.policy.types.market.fairness import equal_share_s, equal_whole_share_s
from trainyard.policy.types.market.menus import Lists, all_configs, shared_menu
from trainyard.policy.types.market.prices import trade


def test_equal_share_by_hand():
    # 4 jobs, 8 workers: two each, of an average speed of 15.
    case = made(np.tile([10.0, 20], (4, 1)), np.full(4, 60), np.full(4, 100), np.full(4, 1.25e9), [4, 4])
    assert equal_share_s(case.rings, case.capacity) == pytest.approx(np.full(4, 100 * (60 / 30 + 1.0)))


def test_the_market_of_equal_shares_is_no_worse_than_the_fluid_one_on_average():
    case = instance(5, 15, seed=0)
    assert fair_share_s(case.rings, case.capacity).sum() <= equal_share_s(case.rings, case.capacity).sum()


def test_less_than_a_worker_each_is_a_part_of_the_time():
    case = made(np.ones((8, 1)), np.full(8, 10), np.full(8, 10), np.zeros(8), [4], most=4)
    took = equal_whole_share_s(case.rings, case.jobs, case.capacity, np.full(8, 8.0))
    assert took == pytest.approx(np.full(8, 200.0))


def test_the_cap_is_part_of_the_cost():
    case = instance(2, 9, seed=0)
    costs = plain_costs(case.rings, 2, case.capacity, np.array([100.0, np.inf]))
    mix = np.eye(3, dtype=int)[:2]
    first, second = (case.seconds(i, mix[i]) for i in range(2))
    assert costs.total(mix) == pytest.approx(first + STEEP * (first - 100) + second)


def test_16_a_lower_cap_is_fairer_and_slower():
    fair, even, slow = [], [], []
    for cap in (np.inf, 2.0, 1.5, 1.2, 1.0):
        ratios, total = [], 0.0
        for seed in range(4):
            case = instance(20, 48, seed)
            equal = equal_share_s(case.rings, case.capacity)
            costs = plain_costs(case.rings, 20, case.capacity, cap * equal)
            menu = shared_menu(costs, case.jobs, all_configs(case.capacity, case.rings.most))
            found = trade(costs, Lists(costs, [menu]))
            assert feasible(case, found.mix)
            assert found.gap < 0.01
            assert trade(costs, ClosedForm(costs, case.rings)).cost == pytest.approx(found.cost, rel=0.005)
            ratios.append(case.rings.seconds(case.jobs, found.mix) / equal)
            total += total_s(case, found.mix)
        fair.append(np.mean([jain(1 / ratio) for ratio in ratios]))
        even.append(np.mean([jain(ratio) for ratio in ratios]))
        slow.append(total)
    assert fair == sorted(fair)
    assert even == sorted(even)
    assert slow == sorted(slow)
    assert fair[-1] > fair[0] + 0.03
    assert even[-1] > even[0] + 0.1


def test_16_weighing_fairness_chooses_fairer_categories():
    index = []
    for beta in (1.0, 0.0):
        some = []
        for seed in range(4):
            case = instance(6, 18, seed)
            equal = equal_share_s(case.rings, case.capacity)
            found = search_sampled(
                case.costs, case.rings, 60, np.random.default_rng(seed), "uniform",
                walk=False, fairness=Fairness(equal, beta),
            )  # fmt: skip
            assert feasible(case, found.mix)
            some.append(jain(case.rings.seconds(case.jobs, found.mix) / equal))
        index.append(np.mean(some))
    assert index[1] > index[0]
