"""AlloX: its matching against all schedules, and the whole simulation against the optimum."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from conftest import checked
from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Profile, Sync
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.allox import match, slots_of


def best_sum(seconds, waits):
    """Least sum of completion times: every assignment to machines, every order on each machine."""
    machines = [(t, wait) for t, free in enumerate(waits) for wait in free]
    least = np.inf
    for where in product(range(len(machines)), repeat=len(seconds)):
        total = 0.0
        for m, (type_, wait) in enumerate(machines):
            mine = [float(seconds[j, type_]) for j in range(len(seconds)) if where[j] == m]
            total += min(_in_order(order, wait) for order in permutations(mine)) if mine else 0.0
        least = min(least, total)
    return least


def _in_order(order, wait):
    ends = wait + np.cumsum(order)
    return float(ends.sum())


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_has_a_smaller_sum(seed):
    rng = np.random.default_rng(seed)
    n, counts = int(rng.integers(1, 5)), rng.integers(1, 3, int(rng.integers(1, 3)))
    seconds = rng.uniform(1.0, 20.0, (n, counts.size))
    waits = [np.where(rng.random(c) < 0.5, 0.0, rng.uniform(0, 20, c)) for c in counts]
    slots = slots_of(waits, n)
    jobs, chosen = match(seconds, np.ones(n), slots)
    assert len(jobs) == n
    cost = (slots.position * seconds[:, slots.type] + slots.wait_s)[jobs, chosen].sum()
    assert cost == pytest.approx(best_sum(seconds, waits), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_slots_that_are_left_out_are_never_needed(seed):
    rng = np.random.default_rng(seed)
    n, waits = 12, [np.r_[np.zeros(3), rng.uniform(0, 50, 4)], np.r_[np.zeros(2), rng.uniform(0, 50, 3)]]
    seconds = rng.uniform(1.0, 20.0, (n, 2))
    few = slots_of(waits, n)
    every = [(t, k, w) for t, free in enumerate(waits) for w in free for k in range(1, n + 1)]
    type_, position, wait = (np.array(column) for column in zip(*every, strict=True))
    all_slots = few._replace(type=type_, machine=np.zeros_like(type_), position=position, wait_s=wait)
    costs = []
    for slots in (few, all_slots):
        jobs, chosen = match(seconds, np.ones(n), slots)
        costs.append((slots.position * seconds[:, slots.type] + slots.wait_s)[jobs, chosen].sum())
    assert len(few.type) < len(all_slots.type) / 2
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


def mixed(per_type, gpus=1):
    nodes = tuple(
        Node(f"{name}{i}", name, gpus, 3.0 * gpus, 50.0 * gpus)
        for name, count in per_type.items()
        for i in range(count)
    )
    return Cluster("mixed", nodes, {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)})


def job(i, v100_s, k80_s, gpus=1, at=0.0):
    """A job that takes so long on either type, however many GPUs it has."""
    profile = Profile(scaling="weak", compute=Compute(0.0, {"V100": v100_s, "K80": k80_s}), sync=Sync("none"))
    return Job(f"j{i}", at, gpus, samples=float(gpus), profile=profile)


@pytest.mark.parametrize(("seed", "gang"), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (5, 3)])
def test_the_simulation_reaches_the_optimum(seed, gang):
    """All jobs at once, nobody is stopped: what is decided again and again is one optimal schedule."""
    rng = np.random.default_rng(seed)
    seconds = np.column_stack([rng.uniform(10, 100, 5), rng.uniform(20, 400, 5)])
    jobs = [job(i, *row, gpus=gang) for i, row in enumerate(seconds.tolist())]
    result = checked(mixed({"V100": 2, "K80": 1}, gang), jobs, "allox")
    assert result.outcomes.restarts.sum() == 0
    assert result.outcomes.jct_s.sum() == pytest.approx(best_sum(seconds, [[0.0, 0.0], [0.0]]), rel=1e-9)


def test_who_would_wait_less_for_a_fast_gpu_waits():
    jobs = [job(0, 10.0, 1000.0), job(1, 20.0, 1000.0)]
    result = checked(mixed({"V100": 1, "K80": 1}), jobs, "allox")
    assert result.outcomes.finish_s.tolist() == [10.0, 30.0]


def test_alpha_lets_only_the_oldest_start():
    """A long job that came first is passed again and again, unless only the oldest may start."""
    jobs = [job(0, 50.0, 50.0), job(1, 90.0, 90.0, at=1.0)]
    jobs += [job(i, 20.0, 20.0, at=2.0 + i) for i in range(2, 8)]
    one = mixed({"V100": 1})
    first = checked(one, jobs, "allox").outcomes
    fair = checked(one, jobs, "allox(alpha=0.1)").outcomes
    assert first.finish_s[1] == first.finish_s.max()
    assert fair.start_s[1] == 50.0
    assert first.jct_s.mean() < fair.jct_s.mean()


def test_gangs_of_several_sizes_all_end():
    rng = np.random.default_rng(3)
    jobs = [
        job(i, *rng.uniform(10, 90, 2).tolist(), gpus=int(rng.choice([1, 2, 4])), at=3.0 * i)
        for i in range(30)
    ]
    result = checked(mixed({"V100": 1, "K80": 2}, 4), jobs, "allox")
    assert result.summary()["completed"] == 30


@pytest.mark.parametrize("alpha", ["0", "1.5"])
def test_alpha_is_a_part(alpha):
    with pytest.raises(InputError, match="give a number above 0, and 1 at most"):
        parse_policy(f"allox(alpha={alpha})")
