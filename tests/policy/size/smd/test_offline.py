"""SMD's decision for one interval, its baselines, and the best there is by trying everything."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest

from trainyard.policy.size.smd.offline import (
    admit,
    best_numbers,
    decide,
    equal_numbers,
    optimus_numbers,
    smd_numbers,
)
from trainyard.policy.size.smd.problem import (
    Demands,
    Training,
    asynchronous,
    completion_s,
    synchronous,
    within_limits,
)
from trainyard.policy.size.smd.rounding import Rounding
from trainyard.policy.size.smd.utility import Deadline, Sigmoid
from trainyard.reproduce.smd.workload import UNIT, Workload, smd_jobs
from trainyard.solve.knapsack import exact, frieze_clarke, lp_rounded

SMALL = (4.0, 16.0, 30.0, 25.0)


def rounding(seed=0):
    return Rounding(np.random.default_rng(seed))


def golden(make):
    fields = [100, 2000, 50, 1, 8, 2.4, 10, 3.5, 0.005, 0.5]
    first, *rest = (np.array([float(x)]) for x in fields)
    demands = Demands(
        *(np.array([x], dtype=float) for x in ((2, 6, 16, 8), (0, 4, 8, 6), (32, 144, 240, 160)))
    )
    return make(Training(first, np.ones((1, 3)), *rest), demands)


@pytest.mark.parametrize(
    ("make", "least", "equal"), [(synchronous, 20322.714, 24353.0), (asynchronous, 776.357, 932.9)]
)
def test_golden_job(make, least, equal):
    problem = golden(make)
    for numbers, known, seconds in (
        (best_numbers(problem), (14, 2), least),
        (optimus_numbers(problem), (14, 2), least),
        (equal_numbers(problem), (10, 10), equal),
    ):
        assert (numbers.workers.item(), numbers.servers.item()) == known
        assert completion_s(problem, numbers.workers, numbers.servers) == pytest.approx([seconds], abs=1e-3)
    rounded = smd_numbers(problem, rounding())
    assert completion_s(problem, *rounded[:2]) <= 1.02 * least


def pairs_of(demands, job):
    """All (w, p) within the limits, one by one."""
    found, w = [], 1
    while True:
        p = 0
        while np.all(
            demands.worker[job] * w + demands.server[job] * (p + 1) <= demands.limit[job] * (1 + 1e-9)
        ):
            p += 1
            found.append((w, p))
        if not p:
            return found
        w += 1


@pytest.mark.parametrize("kind", [True, False])
def test_all_pairs_are_tried(kind, monkeypatch):
    monkeypatch.setattr("trainyard.policy.size.smd.offline.CHUNK", 64)
    problem = smd_jobs(Workload(12, kind, 2, instance=SMALL)).problem
    found = best_numbers(problem)
    for job in range(12):
        some, pairs = problem.take(np.array([job])), pairs_of(problem.demands, job)
        assert found.fits[job] == bool(pairs)
        if pairs:
            w, p = np.array(pairs).T
            least = completion_s(some, w[None], p[None]).min()
            ours = completion_s(problem, found.workers, found.servers)[job]
            assert ours == pytest.approx(least, rel=1e-12)


def best_of_all(problem, utility, capacity):
    """Problem (1) by trying every set of jobs, each job at each of its pairs."""
    worth = np.zeros(problem.constant.size)
    for job in range(worth.size):
        pairs = pairs_of(problem.demands, job)
        if pairs:
            w, p = np.array(pairs).T
            tau = completion_s(problem.take(np.array([job])), w[None], p[None])[0]
            alone = Sigmoid(utility.height[job], utility.steepness[job], utility.middle[job])
            worth[job] = alone(tau).max()
    everybody = range(worth.size)
    best = 0.0
    for chosen in chain.from_iterable(combinations(everybody, size) for size in range(worth.size + 1)):
        if np.all(problem.demands.limit[list(chosen)].sum(axis=0) <= capacity):
            best = max(best, worth[list(chosen)].sum())
    return best


@pytest.mark.parametrize("kind", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_few_jobs_against_everything_that_is_possible(kind, seed):
    problem, utility = smd_jobs(Workload(6, kind, seed, instance=SMALL))
    capacity = 0.4 * problem.demands.limit.sum(axis=0)
    most = best_of_all(problem, utility, capacity)
    ours = decide(problem, utility, capacity, rounding(seed))
    assert ours.total() <= most * (1 + 1e-12)
    ideal = admit(problem, best_numbers(problem), utility, capacity)
    assert ideal.total() == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("outer", [exact, lp_rounded, lambda u, v, c: frieze_clarke(u, v, c, 1)])
@pytest.mark.parametrize("kind", [True, False])
def test_admitted_jobs_keep_to_the_capacity_and_their_limits(outer, kind):
    problem, utility = smd_jobs(Workload(25, kind, 3, instance=SMALL))
    capacity = np.array(UNIT)
    decision = decide(problem, utility, capacity, rounding(), outer=outer)
    chosen = decision.admitted
    assert chosen.any()
    assert not chosen.all()
    assert np.all(problem.demands.limit[chosen].sum(axis=0) <= capacity)
    assert within_limits(problem.demands, decision.workers, decision.servers)[chosen].all()
    assert np.all(decision.utility[chosen] > 0)


@pytest.mark.parametrize("kind", [True, False])
def test_more_capacity_is_never_worse(kind):
    problem, utility = smd_jobs(Workload(40, kind, 6))
    numbers = smd_numbers(problem, rounding())
    totals = [admit(problem, numbers, utility, units * np.array(UNIT)).total() for units in range(1, 7)]
    assert np.all(np.diff(totals) >= -1e-9)
    assert totals[-1] > totals[0]


@pytest.mark.parametrize("kind", [True, False])
def test_everybody_is_within_limits_and_nobody_beats_the_best(kind):
    problem = smd_jobs(Workload(300, kind, 9, instance=SMALL)).problem
    best = best_numbers(problem)
    least = completion_s(problem, best.workers, best.servers)
    assert not best.fits.all()
    for numbers in (smd_numbers(problem, rounding()), equal_numbers(problem), optimus_numbers(problem)):
        assert np.array_equal(numbers.fits, best.fits)
        fits = numbers.fits
        assert within_limits(problem.demands, numbers.workers, numbers.servers)[fits].all()
        tau = completion_s(problem, numbers.workers, numbers.servers)
        assert np.all(tau[fits] >= least[fits] * (1 - 1e-12))
        assert np.all(numbers.workers[~fits] == 1)


def test_optimus_by_utility_does_not_leave_the_plain():
    problem = golden(synchronous)
    late, soon = Sigmoid(50.0, 5.0, 10.0), Sigmoid(50.0, 1e-3, 20_000.0)
    assert optimus_numbers(problem, late)[:2] == (1, 1)
    assert optimus_numbers(problem, soon)[:2] == optimus_numbers(problem)[:2]


def test_who_does_not_fit_is_not_admitted():
    problem = golden(asynchronous)
    tight = replace(problem, demands=replace(problem.demands, limit=problem.demands.limit * 0.05))
    decision = decide(tight, Deadline(1e9), np.full(4, 1e6), rounding())
    assert decision.utility.tolist() == [0.0]
    assert not decision.admitted.any()


def test_nobody_asks():
    problem, utility = smd_jobs(Workload(0, True, 1))
    decision = decide(problem, utility, np.array(UNIT), rounding())
    assert decision.total() == 0
    for numbers in (best_numbers(problem), equal_numbers(problem), optimus_numbers(problem, utility)):
        assert numbers.workers.size == 0
