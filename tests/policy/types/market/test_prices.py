"""The type-price engine against integer programs, assignment and exhaustive search."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from market_cases import brute_force, feasible, instance, made, optimum, relaxed, total_s
from trainyard.model.fairness import jain
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.costs import plain_costs
from trainyard.policy.types.market.menus import Lists, all_configs, shared_menu
from trainyard.policy.types.market.prices import trade
from trainyard.policy.types.market.samples import Samples, sampled_menu

SIZES = [(4, 15), (5, 15), (6, 14), (10, 20), (20, 32)]


def complete(case):
    return Lists(
        case.costs, [shared_menu(case.costs, case.jobs, all_configs(case.capacity, case.rings.most))]
    )


def formula(case):
    return ClosedForm(case.costs, case.rings)


def sampled(case, count, seed):
    work = np.sqrt(case.rings.work / case.rho.mean(axis=1))
    centre = work / work.sum() * case.capacity.sum()
    menu = sampled_menu(case.costs, centre, count, case.rings.most, np.random.default_rng(seed))
    return Samples(case.costs, [menu])


def gap(case, found, best):
    assert feasible(case, found.mix)  # test 6
    assert found.cost == pytest.approx(total_s(case, found.mix), rel=1e-9)
    return found.cost / best - 1


@pytest.mark.parametrize("pricing", [complete, formula])
@pytest.mark.parametrize("seed", range(5))
def test_6_7_8_bound_optimum_rounded(pricing, seed):
    case = instance(3, 9, seed)
    best = brute_force(case)
    assert optimum(case) == pytest.approx(best, rel=1e-6)  # the two oracles agree
    rounded = trade(case.costs, pricing(case), polished=False)
    assert gap(case, rounded, best) >= -1e-9
    assert rounded.bound <= best * (1 + 1e-9)
    assert rounded.fractional <= 3
    assert trade(case.costs, pricing(case)).cost == pytest.approx(best, rel=0.005)


@pytest.mark.parametrize("types", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_7_8_at_most_as_many_mix_as_there_are_types(types, seed):
    case = instance(60, 160, seed, types)
    found = trade(case.costs, formula(case), polished=False)
    assert found.fractional <= types
    worst = max(case.seconds(i, e) for i in range(60) for e in np.eye(types, dtype=int))
    assert gap(case, found, found.bound) * found.bound <= found.fractional * worst + 0.01 * found.bound


@pytest.mark.parametrize(("jobs", "workers"), [(3, 9), (4, 15), (6, 14), (8, 18)])
@pytest.mark.parametrize("seed", range(2))
def test_11_the_exact_finish_is_the_integer_program(jobs, workers, seed):
    case = instance(jobs, workers, seed)
    assert gap(case, trade(case.costs, complete(case), exact=True), optimum(case)) == pytest.approx(
        0, abs=1e-6
    )


@pytest.mark.parametrize("seed", range(5))
def test_12_one_worker_each_is_an_assignment(seed):
    case = instance(12, 12, seed)
    slots = np.repeat(np.arange(3), case.capacity)
    cost = np.array([[case.seconds(i, np.eye(3, dtype=int)[t]) for t in slots] for i in range(12)])
    best = cost[linear_sum_assignment(cost)].sum()
    for pricing in (complete, formula):
        assert gap(case, trade(case.costs, pricing(case)), best) == pytest.approx(0, abs=1e-9)


def test_13_equal_shares_cost_what_jains_index_says():
    """Lemma 3: one type and no network; the best sizes go with the square roots of the work."""
    g = np.random.default_rng(0)
    work = 10 ** g.uniform(3, 5, 20)
    case = made(np.ones((20, 1)), np.full(20, 1e6), work / 1e6, np.zeros(20), [20_000])
    found = trade(case.costs, formula(case))
    root = np.sqrt(work)
    assert found.cost == pytest.approx(root.sum() ** 2 / 20_000, rel=1e-4)
    equal = sum(case.seconds(i, np.array([1000])) for i in range(20))
    assert equal / found.cost == pytest.approx(1 / jain(root), rel=1e-4)
    assert found.mix[:, 0] == pytest.approx(root / root.sum() * 20_000, abs=2)


@pytest.mark.parametrize(("jobs", "workers"), SIZES)
@pytest.mark.parametrize("seed", range(4))
def test_15_gaps_of_the_type_price_engine(jobs, workers, seed):
    case = instance(jobs, workers, seed)
    found = trade(case.costs, formula(case))
    best = optimum(case, total_s(case, found.mix))
    assert -1e-6 <= gap(case, found, best) <= 0.005
    assert gap(case, trade(case.costs, complete(case)), best) <= 0.005
    assert gap(case, trade(case.costs, sampled(case, 64, seed)), best) <= 0.01


def test_15_gaps_at_20_jobs_on_64_workers():
    case = instance(20, 64, seed=0)
    found = trade(case.costs, formula(case))
    best = optimum(case, total_s(case, found.mix))
    assert gap(case, found, best) <= 0.005
    assert gap(case, trade(case.costs, sampled(case, 64, 0)), best) <= 0.01


def test_17_time_of_a_decision():
    case = instance(200, 512, seed=0)
    began = time.process_time()
    found = trade(case.costs, formula(case))
    assert time.process_time() - began < 2.0  # about 0.3 s; benches say more
    assert gap(case, found, found.bound) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_18_one_type(seed):
    case = instance(5, 16, seed, types=1)
    for pricing in (complete, formula):
        assert gap(case, trade(case.costs, pricing(case)), optimum(case)) <= 0.005


@pytest.mark.parametrize("seed", range(3))
def test_18_eight_types(seed):
    case = instance(100, 256, seed, types=8)
    found = trade(case.costs, formula(case))
    assert gap(case, found, found.bound) < 0.01  # by its own certificate, which other tests check
    assert found.fractional <= 8


@pytest.mark.parametrize("pricing", [complete, formula])
def test_20_order_and_units_do_not_matter(pricing):
    case = instance(8, 18, seed=3)
    found = trade(case.costs, pricing(case))
    order = np.random.default_rng(0).permutation(8)
    shuffled = made(
        case.rho[order], case.batch[order], case.iterations[order], case.gradient[order], case.capacity
    )
    assert (trade(shuffled.costs, pricing(shuffled)).mix == found.mix[order]).all()
    turned = made(case.rho[:, ::-1], case.batch, case.iterations, case.gradient, case.capacity[::-1])
    assert (trade(turned.costs, pricing(turned)).mix == found.mix[:, ::-1]).all()
    # Samples counted in eighths, as powers of two change no digit of any sum.
    finer = made(case.rho * 8, case.batch * 8, case.iterations, case.gradient, case.capacity)
    assert (trade(finer.costs, pricing(finer)).mix == found.mix).all()
    longer = made(case.rho, case.batch, case.iterations * 1024, case.gradient, case.capacity)
    assert (trade(longer.costs, pricing(longer)).mix == found.mix).all()


def test_same_instance_same_assignment():
    case = instance(20, 64, seed=1)
    for pricing in (complete, formula, lambda c: sampled(c, 16, 5)):
        one, two = (trade(case.costs, pricing(case)) for _ in "ab")
        assert (one.mix == two.mix).all()
        assert one.cost == two.cost
        assert one.bound == two.bound
        assert (one.prices == two.prices).all()


def test_prices_of_before_are_a_start_not_an_answer():
    case = instance(20, 32, seed=0)
    for guess in (np.zeros(3), np.full(3, 1e12), trade(case.costs, formula(case)).prices):
        found = trade(case.costs, formula(case), guess)
        assert gap(case, found, optimum(case, total_s(case, found.mix))) <= 0.005


def test_nobody_there():
    case = instance(1, 9, seed=0)
    empty = plain_costs(case.rings, 0, case.capacity)
    assert trade(empty, Lists(empty, [])).mix.shape == (0, 3)


@pytest.mark.parametrize("pricing", [complete, formula])
def test_one_job_takes_what_helps_it(pricing):
    wide = made([[10, 20, 40]], [1000], [100], [0.0], [3, 3, 3], most=9)
    assert trade(wide.costs, pricing(wide)).mix.tolist() == [[3, 3, 3]]
    lonely = made([[10, 20, 40]], [1000], [100], [1e12], [3, 3, 3], most=9)
    assert trade(lonely.costs, pricing(lonely)).mix.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("pricing", [complete, formula])
def test_identical_jobs(pricing):
    case = made(np.tile([10.0, 20, 40], (6, 1)), np.full(6, 64), np.full(6, 1e4), np.full(6, 1e8), [4, 4, 4])
    assert gap(case, trade(case.costs, pricing(case)), optimum(case)) <= 0.005


@pytest.mark.parametrize("pricing", [complete, formula])
def test_a_huge_spread_of_work(pricing):
    base = instance(30, 60, seed=0)
    iterations = base.iterations * 10 ** np.linspace(-6, 6, 30)
    case = made(base.rho, base.batch, iterations, base.gradient, base.capacity)
    found = trade(case.costs, pricing(case))
    assert gap(case, found, relaxed(case)) <= 0.005


@pytest.mark.parametrize("pricing", [complete, formula])
def test_types_that_are_of_no_use(pricing):
    base = instance(6, 15, seed=2)
    rho = base.rho.copy()
    rho[:3, 2] = 0
    rho[3, :2] = 0
    case = made(rho, base.batch, base.iterations, base.gradient, base.capacity)
    assert gap(case, trade(case.costs, pricing(case)), optimum(case)) <= 0.005
