"""SMD's Algorithm 1 on jobs with known answers, and against the linear programs that the paper solves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from trainyard.policy.size.smd.corners import (
    LINE,
    PER_SERVER,
    PER_WORKER,
    SERVERS_PER_WORKER,
    WORKERS_PER_SERVER,
    Region,
    corner,
)
from trainyard.policy.size.smd.inner import solve
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    Training,
    asynchronous,
    completion_s,
    most_servers,
    most_workers,
    synchronous,
    within_limits,
)
from trainyard.reproduce.smd.workload import Workload, smd_jobs


def row(*numbers):
    return np.array([numbers], dtype=float)


def golden_training(**changes):
    fields = {
        "iterations": 100,
        "global_batch": 2000,
        "mini_batch": 50,
        "forward_s": 1,
        "backward_s": 8,
        "model_gbit": 2.4,
        "network_gbps": 10,
        "worker_s": 3.5,
        "server_s": 0.005,
        "concurrency": 0.5,
    }
    return Training(
        eta=np.ones((1, 3)), **{name: np.array([float(x)]) for name, x in (fields | changes).items()}
    )


GOLDEN = Demands(row(2, 6, 16, 8), row(0, 4, 8, 6), row(32, 144, 240, 160))
BOTH = pytest.mark.parametrize("make", [synchronous, asynchronous])


def test_factors_of_the_golden_job():
    factors = [factor.item() for factor in synchronous(golden_training(), GOLDEN).factors()]
    assert factors == pytest.approx([800, 350, 0.5, 48, 0, 200_000, 0])
    factors = [factor.item() for factor in asynchronous(golden_training(), GOLDEN).factors()]
    assert factors == pytest.approx([350, 0, 0, 0, 0.5, 5800, 24])


def test_completion_is_iterations_over_speed():
    rng = np.random.default_rng(1)
    e, k, m, t_f, t_b, g, b, beta1, beta2, alpha = rng.uniform(0.1, 2, (10, 50))
    eta = rng.uniform(0.1, 1, (50, 3))
    training = Training(e, eta, k, m, t_f, t_b, g, b, beta1, beta2, alpha)
    demands = Demands(np.ones((50, 1)), np.ones((50, 1)), np.ones((50, 1)))
    w, p = rng.integers(1, 9, (2, 50, 3))
    for j in range(3):
        wj, pj = w[:, j], p[:, j]
        overhead = beta1 * wj + beta2 * pj
        sending = 2 * eta[:, 2] * (g / pj) / (b / wj)
        sync = 1 / (eta[:, 0] * k / wj * t_f + eta[:, 1] * t_b + sending + overhead)
        asyn = wj / (eta[:, 0] * m * t_f + eta[:, 1] * t_b + alpha * sending + overhead)
        assert completion_s(synchronous(training, demands), w, p)[:, j] == pytest.approx(e / sync)
        assert completion_s(asynchronous(training, demands), w, p)[:, j] == pytest.approx(e / asyn)


@pytest.mark.parametrize("eps", [0.5, 0.25, 0.1])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("prune", [True, False])
def test_algorithm_1_on_the_golden_job(eps, merge, prune):
    for make, known in ((synchronous, 20364.603), (asynchronous, 774.034)):
        problem = make(golden_training(), GOLDEN)
        answer = solve(problem, eps, merge, prune)
        assert answer.fits.all()
        assert answer.workers == pytest.approx([14.5], rel=1e-6)
        assert answer.servers == pytest.approx([1.0], rel=1e-6)
        assert completion_s(problem, answer.workers, answer.servers) == pytest.approx([known], abs=1e-3)


def ratios_of(problem, merge):
    """(a, q, c, d) of each ratio (a.x + q) / (c.x + d) of a single job."""
    _, a, b, c, d, e, f = (factor.item() for factor in problem.factors())
    zero = (0, 0)
    lines = [((a, b), 0, zero, 1)] if merge else [((a, 0), 0, zero, 1), ((0, b), 0, zero, 1)]
    others = [((c, 0), 0, (0, 1), 0), ((0, d), 0, (1, 0), 0), (zero, e, (1, 0), 0), (zero, f, (0, 1), 0)]
    return [ratio for ratio in lines + others if any(ratio[0]) or ratio[1]]


def charnes_cooper(ratio, demands, rows, sign):
    """Least (sign 1) or largest (-1) value of a ratio, by a linear program in y = t x and t."""
    a, q, c, d = ratio
    limits = np.column_stack([demands.worker[0], demands.server[0], -demands.limit[0]])
    a_ub = np.vstack([limits, [-1, 0, 1], [0, -1, 1], *rows])
    answer = linprog(sign * np.array([*a, q]), a_ub, np.zeros(len(a_ub)), [[*c, d]], [1.0], method="highs-ds")
    return sign * answer.fun if answer.status == 0 else None


def by_linear_programs(problem, eps, merge):
    """Psi by Algorithm 1 as it is printed, with the end of the grid."""
    ratios, demands = ratios_of(problem, merge), problem.demands
    ends = [[charnes_cooper(ratio, demands, [], sign) for sign in (1, -1)] for ratio in ratios]
    out = int(np.argmax([most / least for least, most in ends]))
    grids = []
    for least, most in (end for j, end in enumerate(ends) if j != out):
        steps = int(np.floor(np.log(most / least) / np.log1p(eps) + 1e-9))
        grids.append([*(least * (1 + eps) ** np.arange(steps + 1)), most])
    others = [ratio for j, ratio in enumerate(ratios) if j != out]
    best = np.inf
    for nu in product(*grids):
        rows = [
            [*(np.array(a) - x * np.array(c)), q - x * d]
            for (a, q, c, d), x in zip(others, np.array(nu) * (1 + 1e-9), strict=True)
        ]
        value = charnes_cooper(ratios[out], demands, rows, 1)
        best = min(best, sum(nu) + value) if value is not None else best
    return problem.constant.item() + best


@pytest.mark.parametrize(("kind", "merge"), [(True, True), (False, True), (True, False)])
def test_corners_are_the_optima_of_the_linear_programs(kind, merge):
    problem = smd_jobs(Workload(4, kind, 3, instance=(4.0, 8.0, 30.0, 20.0))).problem
    mixed = replace(problem, servers_per_worker=problem.per_worker / 20, per_server=problem.per_worker / 9)
    for some in (problem,) if kind else (problem, mixed):
        answer = solve(some, 1.0, merge)
        for job in np.flatnonzero(answer.fits)[:2]:
            known = by_linear_programs(some.take(np.array([job])), 1.0, merge)
            assert answer.bound_s[job] == pytest.approx(known, rel=1e-7)


def test_each_ratio_is_least_at_its_corner():
    rng, n = np.random.default_rng(5), 60
    least, slopes = rng.uniform(1, 4, (2, n)), rng.uniform(0, 1.3, (2, n)) * (rng.random((2, n)) < 0.5)
    rows = rng.uniform(0, 3, (2, 3, n)) * (rng.random((2, 3, n)) < 0.7)
    region = Region(*least, *slopes, *np.concatenate([rows, np.eye(2)[:, :, None] * np.ones(n)], axis=1),
                     np.vstack([rng.uniform(5, 60, (3, n)), np.full((2, n), 40.0)]))  # fmt: skip
    kinds = {
        WORKERS_PER_SERVER: ((1, 0), 0, (0, 1), 0),
        SERVERS_PER_WORKER: ((0, 1), 0, (1, 0), 0),
        PER_WORKER: ((0, 0), 1, (1, 0), 0),
        PER_SERVER: ((0, 0), 1, (0, 1), 0),
        LINE: ((2, 3), 0, (0, 0), 1),
    }
    for kind, ratio in kinds.items():
        free = {WORKERS_PER_SERVER: {"p_per_w": np.zeros(n)}, SERVERS_PER_WORKER: {"w_per_p": np.zeros(n)}}
        some = region._replace(**free.get(kind, {}))
        w, p = corner(kind, some)
        inside = some.holds(w, p)
        assert 10 < inside.sum() < n
        for i in range(n):
            demands = Demands(some.on_w[None, :, i], some.on_p[None, :, i], some.limit[None, :, i])
            bounds = [
                [-1, 0, some.least_w[i]],
                [0, -1, some.least_p[i]],
                [some.p_per_w[i], -1, 0],
                [-1, some.w_per_p[i], 0],
            ]
            known = charnes_cooper(ratio, demands, bounds, 1)
            assert inside[i] == (known is not None)
            if inside[i]:
                (a, b), q, (c, d), e = ratio
                value = (a * w[i] + b * p[i] + q) / (c * w[i] + d * p[i] + e)
                assert value == pytest.approx(known, rel=1e-6)


@BOTH
def test_one_of_each_does_not_fit(make):
    demands = Demands(row(2, 6, 16, 8), row(0, 4, 8, 6), row(32, 144, 23, 160))
    answer = solve(make(golden_training(), demands))
    assert answer.fits.tolist() == [False]
    assert np.isinf(answer.bound_s).all()
    assert (answer.workers.item(), answer.servers.item()) == (1.0, 1.0)


@BOTH
def test_one_of_each_and_no_more(make):
    problem = make(golden_training(), Demands(GOLDEN.worker, GOLDEN.server, row(2, 10, 24, 14)))
    answer = solve(problem)
    assert answer.workers == pytest.approx([1.0])
    assert answer.servers == pytest.approx([1.0])
    assert answer.bound_s == pytest.approx(completion_s(problem, np.ones(1), np.ones(1)))


@BOTH
@pytest.mark.parametrize(
    "nothing",
    [
        {"server_s": 0},
        {"model_gbit": 0},
        {"concurrency": 0},
        {"worker_s": 0},
        {"server_s": 0, "model_gbit": 0, "worker_s": 0},
        {"server_s": 0, "model_gbit": 0, "worker_s": 0, "global_batch": 0},
    ],
)
def test_ratios_that_are_nothing(make, nothing):
    problem = make(golden_training(**nothing), GOLDEN)
    for merge in (True, False):
        answer = solve(problem, 0.1, merge)
        w = np.linspace(1, 14.5, 500)[None]
        p = np.linspace(1, most_servers(GOLDEN, w), 200, axis=1)
        least = completion_s(problem, w[:, None], p).min()
        tau = completion_s(problem, answer.workers, answer.servers).item()
        assert tau <= 1.1 * least
        assert tau <= answer.bound_s.item() * (1 + 1e-8)


@BOTH
def test_no_iterations_take_no_time(make):
    answer = solve(make(golden_training(iterations=0), GOLDEN))
    assert answer.bound_s.tolist() == [0.0]
    assert within_limits(GOLDEN, answer.workers, answer.servers).all()


def test_a_resource_that_nobody_needs_does_not_count():
    without = Demands(GOLDEN.worker[:, 1:], GOLDEN.server[:, 1:], GOLDEN.limit[:, 1:])
    idle = Demands(GOLDEN.worker * [0, 1, 1, 1], GOLDEN.server, GOLDEN.limit * [0, 1, 1, 1])
    for make in (synchronous, asynchronous):
        answers = [solve(make(golden_training(), demands)) for demands in (without, idle)]
        assert answers[0].bound_s == pytest.approx(answers[1].bound_s)


def test_numbers_may_have_bounds_of_their_own():
    none, one = np.zeros((1, 1)), np.ones((1, 1))
    bounded = Demands(
        np.hstack([GOLDEN.worker, one, none]),
        np.hstack([GOLDEN.server, none, one]),
        np.hstack([GOLDEN.limit, 6 * one, 3 * one]),
    )
    problem = synchronous(golden_training(), bounded)
    answer = solve(problem)
    assert answer.workers == pytest.approx([6.0])
    assert most_workers(problem.demands, np.ones(1)) == pytest.approx([6.0])
    assert most_servers(problem.demands, np.ones(1)) == pytest.approx([3.0])


def test_numbers_without_a_bound_are_refused():
    with pytest.raises(ValueError, match="no bound"):
        Demands(row(1, 1), row(0, 0), row(5, 5))


def together(one: Problem, other: Problem) -> Problem:
    factors = (np.concatenate(pair) for pair in zip(one.factors(), other.factors(), strict=True))
    demands = (
        np.concatenate([getattr(one.demands, name), getattr(other.demands, name)])
        for name in ("worker", "server", "limit")
    )
    return Problem(*factors, Demands(*demands))


def test_both_kinds_of_training_may_stand_in_one_problem():
    sync, asyn = (smd_jobs(Workload(40, kind, 8)).problem for kind in (True, False))
    both = solve(together(sync, asyn))
    for at, alone in ((slice(40), solve(sync)), (slice(40, 80), solve(asyn))):
        for mixed, single in zip(both, alone, strict=True):
            assert np.array_equal(mixed[at], single)


def test_nobody_asks_for_nothing():
    nobody = smd_jobs(Workload(0, True, 1)).problem
    assert [part.size for part in solve(nobody)] == [0, 0, 0, 0]


def test_work_is_cut_into_pieces(monkeypatch):
    for kind in (True, False):
        problem = smd_jobs(Workload(30, kind, 4)).problem
        whole = solve(problem)
        monkeypatch.setattr("trainyard.policy.size.smd.inner.CHUNK", 50)
        assert solve(problem).bound_s == pytest.approx(whole.bound_s, rel=1e-12)
        monkeypatch.undo()
