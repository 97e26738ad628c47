"""SMD's randomised rounding: what it is on average, and that it keeps to the limits."""

from __future__ import annotations

import numpy as np
import pytest

from trainyard.policy.size.smd.inner import solve
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    completion_s,
    within_limits,
)
from trainyard.policy.size.smd.rounding import Rounding, draw, polished, round_numbers, safe_scale
from trainyard.reproduce.smd.workload import Workload, smd_jobs

RNG = np.random.default_rng


def plain(demands, per_worker=1.0):
    """Jobs that are the faster the more workers they have."""
    n = len(demands.limit)
    none = np.zeros(n)
    return Problem(none, none, none, none, none, np.full(n, per_worker), none, demands)


def demands_of(worker, server, limit):
    return Demands(*(np.atleast_2d(np.array(x, dtype=float)) for x in (worker, server, limit)))


def test_on_average_nothing_changes():
    numbers = np.array([1.0, 2.25, 3.5, 7.9])
    drawn = draw(RNG(1), numbers, (4, 200_000))
    assert drawn.mean(axis=1) == pytest.approx(numbers, abs=0.01)
    assert np.all((drawn >= np.floor(numbers)[:, None]) & (drawn <= np.ceil(numbers)[:, None]))


@pytest.mark.parametrize(("room", "scale"), [(5, 0.344), (10, 0.463), (20, 0.576), (50, 0.704), (100, 0.779)])
def test_scales_of_the_paper(room, scale):
    demands = demands_of([1, 1, 1, 1], [1, 1, 1, 1], [room, 200, 200, 200])
    assert safe_scale(demands) == pytest.approx([scale], abs=5e-4)


@pytest.mark.parametrize("delta", [1.0, 0.3])
def test_scale_is_the_root_of_its_equation(delta):
    demands = demands_of([3, 1], [1, 2], [30, 17])
    scale = safe_scale(demands, delta)
    room = 17 / 2
    assert np.exp(-((1 / scale - 1) ** 2) * scale * room / 3) == pytest.approx(delta / 4)


@pytest.mark.parametrize("delta", [1.0, 0.5])
def test_scaled_draws_rarely_break_a_limit(delta):
    problem = smd_jobs(Workload(300, True, 5)).problem
    best = solve(problem)
    scale = safe_scale(problem.demands, delta)
    rng, tries = RNG(2), 500
    w, p = (draw(rng, scale * x, (300, tries)) for x in (best.workers, best.servers))
    d = problem.demands
    for r in range(4):
        need = d.worker[:, r, None] * w + d.server[:, r, None] * p
        broken = (need > d.limit[:, r, None] * (1 + 1e-9)).mean(axis=1)
        assert broken.max() <= delta / 8


def test_the_best_draw_within_the_limits_counts():
    demands = demands_of([1], [1], [9])
    w, p = round_numbers(plain(demands), np.array([7.5]), np.array([1.5]), Rounding(RNG(3), tries=50))
    assert (w.item(), p.item()) == (8, 1)


def test_without_a_feasible_draw_both_are_rounded_down():
    demands = demands_of(np.ones((200, 1)), np.ones((200, 1)), np.full((200, 1), 3.8))
    numbers = np.full(200, 1.9)
    w, p = round_numbers(plain(demands), numbers, numbers, Rounding(RNG(4), tries=1))
    assert within_limits(demands, w, p).all()
    assert np.any((w == 1) & (p == 1))
    w, p = round_numbers(plain(demands), numbers, numbers, Rounding(RNG(4), tries=1, scale=1.05))
    assert within_limits(demands, w, p).all()


def test_nothing_falls_below_one():
    demands = demands_of([1], [1], [4])
    w, p = round_numbers(plain(demands), np.ones(1), np.ones(1), Rounding(RNG(5), scale=0.3))
    assert (w.item(), p.item()) == (1, 1)


def test_whole_numbers_but_for_rounding_stay():
    demands = demands_of([1], [1], [9])
    numbers = np.array([8 - 1e-9]), np.array([1 + 1e-9])
    w, p = round_numbers(plain(demands), *numbers, Rounding(RNG(6), tries=3))
    assert (w.item(), p.item()) == (8, 1)


def test_the_same_seed_draws_the_same():
    problem = smd_jobs(Workload(50, False, 6)).problem
    best = solve(problem)
    first, again = (
        round_numbers(problem, best.workers, best.servers, Rounding(RNG(7), tries=2)) for _ in range(2)
    )
    assert np.array_equal(first, again)


def test_nobody_is_rounded():
    nobody = smd_jobs(Workload(0, False, 6)).problem
    w, p = round_numbers(nobody, np.ones(0), np.ones(0), Rounding(RNG(8)))
    assert w.size == p.size == 0


@pytest.mark.parametrize("synchronous", [True, False])
def test_polishing_never_loses_and_ends_where_no_neighbour_is_better(synchronous):
    problem, _ = smd_jobs(Workload(200, synchronous, 3))
    best = solve(problem, 0.5)
    before = round_numbers(problem, best.workers, best.servers, Rounding(RNG(0)))
    after = polished(problem, *before)
    tau = completion_s(problem, *after)
    assert np.all(within_limits(problem.demands, *after)[best.fits])
    assert np.all(tau <= completion_s(problem, *before))
    for step in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        near = after[0] + step[0], after[1] + step[1]
        valid = (near[0] >= 1) & (near[1] >= 1)
        near = np.maximum(near, 1)
        valid &= within_limits(problem.demands, *near)
        assert np.all(completion_s(problem, *near)[valid] >= tau[valid])
