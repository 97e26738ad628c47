"""Instances of the market, and answers that do not use the market's code."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import csr_array, vstack

from trainyard.policy.types.market.costs import Costs, plain_costs
from trainyard.policy.types.market.rings import Rings, ring_jobs

LINK = 10e9 / 8  # bytes/s
# Samples/s on a K80, P100 and V100, batch, gradient bytes: the pattern of Gavel's measurements.
MODELS = np.array(
    [
        (52, 219, 367, 64, 102e6),
        (8, 13, 21, 20, 260e6),
        (230, 610, 1020, 128, 14e6),
        (980, 1790, 2650, 512, 50e6),
        (41, 190, 410, 64, 550e6),
        (5, 19, 44, 16, 400e6),
        (105, 150, 182, 128, 5e6),
    ]
)


class Instance(NamedTuple):
    """A market, with the numbers it was made of."""

    rings: Rings
    costs: Costs
    rho: np.ndarray
    batch: np.ndarray
    iterations: np.ndarray
    gradient: np.ndarray
    capacity: np.ndarray

    @property
    def jobs(self) -> np.ndarray:
        return np.arange(len(self.batch))

    def seconds(self, job: int, config: np.ndarray) -> float:
        """Equation (1), written out for one job."""
        n = int(config.sum())
        if n == 0 or n > self.batch[job] or (self.rho[job][config > 0] <= 0).any():
            return np.inf
        computing = self.batch[job] / float(self.rho[job] @ config)
        return self.iterations[job] * (computing + 2 * (n - 1) / n * self.gradient[job] / LINK)


def made(rho, batch, iterations, gradient, capacity, most=None) -> Instance:
    """Build a market from arrays."""
    rho, batch, iterations, gradient = (np.asarray(x, float) for x in (rho, batch, iterations, gradient))
    capacity = np.asarray(capacity, dtype=np.int64)
    spare = int(capacity.sum()) - len(rho) + 1
    rings = ring_jobs(rho, batch, iterations, gradient, LINK, max(1, most or spare))
    return Instance(rings, plain_costs(rings, len(rho), capacity), rho, batch, iterations, gradient, capacity)


def instance(jobs: int, workers: int, seed: int, types: int = 3, most: int | None = None) -> Instance:
    """Jobs with Gavel's speeds give or take 10 % and its durations, on equally many workers of each type."""
    g = np.random.default_rng(seed)
    model = MODELS[g.integers(0, len(MODELS), jobs)]
    rho = model[:, :3]
    if types != 3:
        rho = np.stack([np.interp(np.linspace(0, 2, types), [0, 1, 2], row) for row in rho])
    rho = rho * g.uniform(0.9, 1.1, rho.shape)
    short, long = 10 ** g.uniform(1.5, 3, jobs), 10 ** g.uniform(3, 4, jobs)
    seconds = 60 * np.where(g.random(jobs) < 0.8, short, long)
    batch = model[:, 3]
    capacity = np.full(types, workers // types) + (np.arange(types) < workers % types)
    return made(rho, batch, seconds * rho[:, -1] / batch, model[:, 4], capacity, most)


def every_config(capacity: np.ndarray) -> np.ndarray:
    return np.array([c for c in product(*(range(int(n) + 1) for n in capacity)) if any(c)])


def brute_force(case: Instance) -> float:
    """Try all assignments of all workers, some of which may be idle."""
    best = np.inf
    configs = every_config(case.capacity)
    took = [[case.seconds(i, c) for c in configs] for i in range(len(case.batch))]

    def place(job: int, room: np.ndarray, so_far: float) -> None:
        nonlocal best
        if so_far >= best:
            return
        if job == len(took):
            best = so_far
            return
        for config, seconds in zip(configs, took[job], strict=True):
            if np.isfinite(seconds) and (config <= room).all():
                place(job + 1, room - config, so_far + seconds)

    place(0, case.capacity, 0.0)
    return float(best)


def optimum(case: Instance, upper: float = np.inf) -> float:
    """The plain integer program over all configurations.

    Given the cost of any assignment it does without those that no better one can use: whose reduced cost in
    the linear program is more than what lies between that program's value and this cost.
    """
    job, config, cost = _columns(case)
    if np.isfinite(upper):
        least, reduced = _relaxed(case, job, config, cost)
        kept = reduced <= (upper - least) + 1e-6 * upper
        job, config, cost = job[kept], config[kept], cost[kept]
    scale = cost.mean() or 1.0
    found = milp(
        cost / scale,
        integrality=np.ones(len(job)),
        constraints=LinearConstraint(*_rows(case, job, config)),
        options={"mip_rel_gap": 1e-9},
    )
    assert found.success, found.message
    return float(found.fun * scale)


def relaxed(case: Instance) -> float:
    """The linear program in which jobs may mix configurations."""
    return _relaxed(case, *_columns(case))[0]


def _columns(case: Instance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    configs = every_config(case.capacity)
    n = configs.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        computing = case.batch[:, None] / (case.rho @ configs.T)
        cost = case.iterations[:, None] * (computing + 2 * (n - 1) / n * case.gradient[:, None] / LINK)
    cost[(n > case.batch[:, None]) | ((case.rho <= 0).astype(int) @ configs.T > 0)] = np.inf
    job, pick = np.nonzero(np.isfinite(cost))
    return job, configs[pick], cost[job, pick]


def _rows(case: Instance, job: np.ndarray, config: np.ndarray) -> tuple[csr_array, np.ndarray, np.ndarray]:
    jobs = len(case.batch)
    one = csr_array((np.ones(len(job)), (job, np.arange(len(job)))), shape=(jobs, len(job)))
    least = np.concatenate([np.ones(jobs), np.full(len(case.capacity), -np.inf)])
    most = np.concatenate([np.ones(jobs), case.capacity])
    return vstack([one, csr_array(config.T)]).tocsr(), least, most


def _relaxed(
    case: Instance, job: np.ndarray, config: np.ndarray, cost: np.ndarray
) -> tuple[float, np.ndarray]:
    rows, _, most = _rows(case, job, config)
    jobs, scale = len(case.batch), cost.mean() or 1.0
    found = linprog(cost / scale, rows[jobs:], most[jobs:], rows[:jobs], most[:jobs], method="highs")
    assert found.success, found.message
    return found.fun * scale, found.lower.marginals * scale


def feasible(case: Instance, mix: np.ndarray) -> bool:
    """Nobody without workers, nothing used twice, nobody where it cannot run (test 6)."""
    usable = all(np.isfinite(case.seconds(i, row)) for i, row in enumerate(mix))
    return usable and mix.shape == case.rho.shape and (mix >= 0).all() and (mix.sum(0) <= case.capacity).all()


def total_s(case: Instance, mix: np.ndarray) -> float:
    return sum(case.seconds(i, row) for i, row in enumerate(mix))
