"""The paper's engine: categories, the market inside one, sampling."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog

from market_cases import brute_force, every_config, feasible, instance, made, optimum, total_s
from trainyard.policy.types.market import compositions
from trainyard.policy.types.market.category import category_values, search_all, search_sampled
from trainyard.policy.types.market.clearing import clear_types


def categories(workers, jobs):
    return np.concatenate(list(compositions.every(workers, jobs)))


def best_of_category(case, sizes):
    """The best assignment with these numbers of workers, by trying all."""
    configs = every_config(case.capacity)
    options = [configs[configs.sum(axis=1) == n] for n in sizes]
    best = np.inf
    for mix in product(*options):
        if (np.sum(mix, axis=0) <= case.capacity).all():
            best = min(best, total_s(case, np.array(mix)))
    return best


@pytest.mark.parametrize(("workers", "jobs"), [(1, 1), (6, 1), (6, 6), (9, 3), (15, 4), (12, 5)])
def test_3_all_categories_once_and_in_order(workers, jobs):
    found = [tuple(row) for row in categories(workers, jobs).tolist()]
    assert len(found) == compositions.count(workers, jobs) == comb(workers - 1, jobs - 1)
    assert found == sorted(set(found))
    assert all(sum(row) == workers and min(row) >= 1 for row in found)
    assert [tuple(compositions.unrank(rank, workers, jobs)) for rank in range(len(found))] == found


def test_3_ranks_beyond_64_bits():
    last = comb(511, 199) - 1
    assert compositions.unrank(0, 512, 200) == [1] * 199 + [313]
    assert compositions.unrank(last, 512, 200) == [313] + [1] * 199


@pytest.mark.parametrize("draw", ["uniform", "prioritised", "around"])
@pytest.mark.parametrize(("workers", "jobs"), [(3, 3), (15, 4), (512, 200), (7, 1)])
def test_3_samples_are_categories(draw, workers, jobs):
    g = np.random.default_rng(0)
    work = 10 ** g.uniform(0, 9, jobs)
    sizes = {
        "uniform": lambda: compositions.uniform(workers, jobs, 20, g),
        "prioritised": lambda: compositions.prioritised(work, workers, 20, 0.3, g),
        "around": lambda: compositions.around(work, workers, 20, 10.0, g),
    }[draw]()
    assert sizes.shape == (20, jobs)
    assert (sizes >= 1).all()
    assert (sizes.sum(axis=1) == workers).all()


def test_3_prioritised_samples_favour_jobs_with_much_work():
    work = np.array([1.0, 100, 10, 1000])
    mean = compositions.prioritised(work, 15, 2000, 0.3, np.random.default_rng(0)).mean(axis=0)
    assert mean.argmax() == 3
    assert mean[3] > 15 / 4


@pytest.mark.parametrize("seed", range(40))
def test_4_clearing_is_the_linear_program(seed):
    g = np.random.default_rng(seed)
    jobs, types = g.integers(1, 7), g.integers(1, 5)
    sizes = g.integers(1, 5, jobs)
    capacity = g.multinomial(int(sizes.sum()) + int(g.integers(0, 4)), np.ones(types) / types)
    value = 10 ** g.uniform(-3, 3, (jobs, types))
    if seed % 2:
        value = np.round(value)  # ties
    sold, prices = clear_types(value[None], sizes[None], capacity)
    rows = np.kron(np.eye(jobs), np.ones(types))
    columns = np.kron(np.ones(jobs), np.eye(types))
    best = linprog(-value.ravel(), columns, capacity, rows, sizes)
    assert (sold[0].sum(axis=1) == sizes).all()
    assert (sold[0].sum(axis=0) <= capacity).all()
    assert (value * sold[0]).sum() == pytest.approx(-best.fun, rel=1e-9)
    # Competitive prices: nobody would rather have another type, nothing idle costs anything.
    net = value - prices[0]
    held = sold[0] > 0
    assert (np.where(held, net, np.inf).min(axis=1) >= net.max(axis=1) - 1e-9 * value.max()).all()
    assert prices[0][sold[0].sum(axis=0) < capacity] == pytest.approx(0, abs=1e-9 * value.max())


@pytest.mark.parametrize("seed", range(10))
def test_4_clearing_is_the_assignment_of_slots(seed):
    g = np.random.default_rng(seed)
    value, sizes, capacity = g.uniform(0, 1, (5, 3)), g.integers(1, 4, 5), np.array([5, 5, 5])
    sold, _ = clear_types(value[None], sizes[None], capacity)
    slots = value[np.repeat(np.arange(5), sizes)][:, np.repeat(np.arange(3), capacity)]
    assert (value * sold[0]).sum() == pytest.approx(slots[linear_sum_assignment(-slots)].sum())


def test_4_many_markets_at_once_are_the_same_as_one_by_one():
    g = np.random.default_rng(0)
    value, sizes = g.uniform(0, 1, (50, 4, 3)), compositions.uniform(12, 4, 50, g)
    capacity = np.array([4, 4, 4])
    together = clear_types(value, sizes, capacity)[0]
    for k in range(50):
        assert (clear_types(value[k : k + 1], sizes[k : k + 1], capacity)[0][0] == together[k]).all()


def test_4_a_market_that_cannot_be_cleared_gives_nothing():
    value = np.array([[[1.0, -np.inf], [1.0, -np.inf]]])
    sold, _ = clear_types(value, np.array([[2, 1]]), np.array([2, 5]))
    assert not sold.any()


@pytest.mark.parametrize("seed", range(4))
def test_5_the_bound_of_a_category_holds(seed):
    case = instance(3, 9, seed)
    some = categories(9, 3)[:: 3 + seed]
    valued = category_values(case.rings, np.ones(3), case.capacity, some)
    for k, sizes in enumerate(some):
        best = best_of_category(case, sizes)
        assert valued.bound[k] <= best * (1 + 1e-9)
        assert best <= valued.seconds[k] * (1 + 1e-9)
        assert valued.seconds[k] == pytest.approx(total_s(case, valued.mix[k]))
        assert (valued.mix[k].sum(axis=1) == sizes).all()


def test_14_the_best_of_n_draws_is_in_the_top_as_often_as_it_should():
    case = instance(4, 15, seed=0)
    every = categories(15, 4)
    seconds = category_values(case.rings, np.ones(4), case.capacity, every).seconds
    rank = dict(zip(map(tuple, every.tolist()), seconds.argsort().argsort().tolist(), strict=True))
    top, draws, trials = 0.05, 45, 1000
    drawn = compositions.uniform(15, 4, draws * trials, np.random.default_rng(0)).tolist()
    best = np.array([rank[tuple(row)] for row in drawn]).reshape(trials, draws).min(axis=1)
    often = (best < top * len(every)).mean()
    promised = 1 - (1 - top) ** draws
    assert abs(often - promised) < 4 * np.sqrt(promised * (1 - promised) / trials) + 0.01


@pytest.mark.parametrize(("jobs", "workers"), [(3, 9), (4, 15), (6, 14)])
@pytest.mark.parametrize("seed", range(4))
def test_15_gaps_of_all_categories_and_of_samples(jobs, workers, seed):
    case = instance(jobs, workers, seed)
    best = brute_force(case) if jobs == 3 else optimum(case)
    every = search_all(case.costs, case.rings, walk=False)
    assert feasible(case, every.mix)
    assert every.bound * (1 - 1e-9) <= best <= every.cost * (1 + 1e-9)
    assert every.cost <= 1.02 * best
    some = search_sampled(case.costs, case.rings, 100, np.random.default_rng(seed), walk=False)
    assert feasible(case, some.mix)
    assert best * (1 - 1e-9) <= some.cost <= 1.05 * best


@pytest.mark.parametrize(("jobs", "workers"), [(4, 15), (6, 14), (10, 20), (20, 32)])
@pytest.mark.parametrize("seed", range(5))
def test_15_gaps_of_the_category_engine(jobs, workers, seed):
    case = instance(jobs, workers, seed)
    found = search_sampled(case.costs, case.rings, 64, np.random.default_rng(seed))
    assert feasible(case, found.mix)
    assert found.cost <= 1.0204 * optimum(case, total_s(case, found.mix))


@pytest.mark.parametrize("sampler", ["around", "uniform", "prioritised"])
def test_same_seed_same_sample(sampler):
    case = instance(10, 24, seed=0)
    one, two = (
        search_sampled(case.costs, case.rings, 30, np.random.default_rng(9), sampler, walk=False)
        for _ in "ab"
    )
    assert feasible(case, one.mix)
    assert (one.mix == two.mix).all()


def test_samples_around_the_square_roots_beat_uniform_ones():
    cases = [instance(20, 64, seed) for seed in range(3)]
    cost = {
        sampler: np.mean(
            [
                search_sampled(c.costs, c.rings, 50, np.random.default_rng(0), sampler, walk=False).cost
                for c in cases
            ]
        )
        for sampler in ("around", "uniform")
    }
    assert cost["around"] < cost["uniform"]


def test_workers_may_idle_where_nobody_needs_them():
    case = made(np.tile([10.0, 20], (2, 1)), [64, 64], [100, 100], [1e12, 1e12], [4, 4])
    for found in (
        search_all(case.costs, case.rings),
        search_sampled(case.costs, case.rings, 20, np.random.default_rng(0)),
    ):
        assert found.mix.tolist() == [[0, 1], [0, 1]]


def test_18_one_type_and_eight():
    one = instance(4, 12, seed=0, types=1)
    assert search_all(one.costs, one.rings).cost == pytest.approx(optimum(one), rel=1e-6)
    eight = instance(10, 40, seed=0, types=8)
    assert feasible(eight, search_sampled(eight.costs, eight.rings, 20, np.random.default_rng(0)).mix)
