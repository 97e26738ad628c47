"""Hadar: prices, each job's best mix against exhaustive search, and what it does in a small cluster."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from conftest import checked
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.hadar import all_mixes, best_mix, buyers_of, price_range, prices

MODELS = ("resnet50", "vgg16", "bert-base", "lstm", "ncf")
TYPES = {"V100": GpuType("V100", 1.0), "P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.14)}
CAPACITY = np.array([4, 4, 4])


def three_types():
    nodes = tuple(Node(f"{name}-0", name, 4, 12.0, 240.0) for name in TYPES)
    return Cluster("three", nodes, TYPES)


def yard_with(jobs, restart_s=30.0):
    yard = Yard(three_types(), parse_policy("hadar").decide, Rules(restart_s=restart_s))
    for job in jobs:
        yard.handle(JobSubmitted(0.0, job))
    return yard


def random_jobs(rng, n):
    return [
        Job(
            f"j{i}",
            0.0,
            int(rng.integers(1, 7)),
            samples=float(10 ** rng.uniform(4, 7)),
            profile=zoo_profile(MODELS[int(rng.integers(len(MODELS)))]),
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("seed", range(15))
def test_the_best_mix_is_the_best_of_all(seed):
    """Every mix of every job, one by one, with the paper's payoff worked out anew."""
    rng = np.random.default_rng(seed)
    jobs, now = random_jobs(rng, 4), float(rng.uniform(0, 500))
    yard = yard_with(jobs)
    snapshot = yard.snapshot(now)
    ranked, none = np.arange(4), np.zeros((4, 3), dtype=np.int64)
    held = none.copy()
    held[0, 0] = jobs[0].gpus if jobs[0].gpus <= 4 else 0
    buyers = buyers_of(snapshot, ranked, held, CAPACITY, np.zeros(4, dtype=bool))
    price, left = rng.uniform(0, 1e-4, 3), rng.integers(0, 5, 3)
    for j, job in enumerate(jobs):
        speeds = {}
        for mix in product(range(5), repeat=3):
            if sum(mix) == job.gpus:
                shapes = snapshot.speed.proportional(np.array([mix]))
                speeds[mix] = float(snapshot.speed.bulk(job.profile, shapes)[0])
        ideal_s = job.samples / max(speeds.values())
        payoffs = {}
        for mix, speed in speeds.items():
            if (np.array(mix) <= left).all():
                moved = held[j].any() and mix != tuple(held[j])
                run_s = (30.0 if moved else 0.0) + job.samples / speed
                payoffs[mix] = ideal_s / (now + run_s) - run_s * float(price @ np.array(mix))
        bought = best_mix(buyers[j], price, left, False)
        if not payoffs or max(payoffs.values()) <= 0:
            assert bought is None
        else:
            assert payoffs[tuple(bought)] == pytest.approx(max(payoffs.values()), rel=1e-9)
        if payoffs:
            anyway = best_mix(buyers[j], price, left, True)
            assert payoffs[tuple(anyway)] == pytest.approx(max(payoffs.values()), rel=1e-9)


def test_prices_rise_from_the_least_to_the_largest():
    low, high, all_ = np.array([1.0, 2.0]), np.array([100.0, 2.0]), np.array([4, 4])
    steps = [prices(low, high, np.array([n, n]), all_) for n in (4, 2, 0)]
    assert [step[0] for step in steps] == pytest.approx([1.0, 10.0, 100.0])
    assert [step[1] for step in steps] == pytest.approx([2.0, 2.0, 2.0])


def test_everybody_can_pay_the_least_price_and_nobody_the_largest():
    """What makes the rule work: an empty cluster takes anybody, a full one nobody."""
    jobs = random_jobs(np.random.default_rng(7), 6)
    snapshot = yard_with(jobs).snapshot(100.0)
    none = np.zeros((6, 3), dtype=np.int64)
    buyers = buyers_of(snapshot, np.arange(6), none, CAPACITY, np.zeros(6, dtype=bool))
    low, high = price_range(buyers, 3)
    assert all(best_mix(buyer, low, CAPACITY, False) is not None for buyer in buyers.values())
    assert all(best_mix(buyer, high * 1.0001, CAPACITY, False) is None for buyer in buyers.values())


@pytest.mark.parametrize(("gpus", "types"), [(1, 1), (5, 2), (4, 3), (8, 3), (3, 5)])
def test_all_mixes_are_there_once(gpus, types):
    mixes = all_mixes(gpus, np.full(types, gpus))
    assert len(mixes) == comb(gpus + types - 1, types - 1) == len({tuple(mix) for mix in mixes.tolist()})
    assert (mixes.sum(axis=1) == gpus).all()


def test_mixes_stay_within_room_however_many_there_are():
    room = np.array([300, 20, 500, 40])
    for gpus in (3, 60, 400, 850):
        mixes = all_mixes(gpus, room)
        assert (mixes.sum(axis=1) == gpus).all()
        assert (mixes <= room).all()
        assert len(mixes)
    assert len(all_mixes(861, room)) == 0


def test_a_gang_spans_types_when_no_type_has_room():
    gnmt = zoo_profile("gnmt")
    yard = yard_with([Job(job_id, 0.0, 3, samples=1e7, profile=gnmt) for job_id in "abcd"])
    starts = [i for i in yard.handle(DecisionDue(0.0)) if hasattr(i, "samples_per_s")]
    assert len(starts) == 4  # three fit on a type each, the fourth takes what is left
    assert max(len(start.allocation.shares) for start in starts) > 1
    assert yard.free.total == 0


def test_nobody_waits_beside_idle_gpus():
    """A job so long that it could not pay the price of GPUs that are nearly all taken."""
    jobs = [Job(f"s{i}", 0.0, 3, duration_s=60.0) for i in range(3)]
    jobs += [Job("long", 0.0, 1, duration_s=1e6)]
    result = checked(three_types(), jobs, "hadar")
    assert dict(zip(result.outcomes.job_id, result.outcomes.start_s, strict=True))["long"] == 0.0


def test_running_jobs_move_only_where_it_pays():
    """A restart that costs more than a faster GPU saves."""
    lstm = zoo_profile("lstm")
    jobs = [Job("a", 0.0, 4, samples=2e6, profile=lstm), Job("b", 0.0, 4, samples=2.2e6, profile=lstm)]
    dear = checked(three_types(), jobs, "hadar(round_s=60)", restart_s=1e5)
    free = checked(three_types(), jobs, "hadar(round_s=60)", restart_s=0.0)
    assert dear.outcomes.restarts.sum() == 0
    assert free.outcomes.restarts.sum() > 0
