"""The market as a stage: what it decides in a yard, what it says of it, and how it fares over time."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from conftest import checked, finishes
from trainyard.cli.output import jobs_csv
from trainyard.core.events import DecisionDue, JobSubmitted, NodeFailed
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Profile, Sync
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.market.stage import Market
from trainyard.sim.failures import Failure

TYPES = {"V100": GpuType("V100", 1.0), "P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.25)}
MODELS = ["resnet18", "resnet50", "transformer", "lstm", "vgg16", "mobilenet"]
ENGINES = ["market", "market(engine=category)", "market(samples=16)", "market(fair=1.5)", "market(beta=0.5)"]


def cluster(**nodes):
    """So many nodes with so many GPUs of each type: V100=(2, 4) are two with four each."""
    made = [
        Node(f"{name}-{i}", name, gpus, 8.0 * gpus, 64.0 * gpus)
        for name, (count, gpus) in nodes.items()
        for i in range(count)
    ]
    return Cluster("test", tuple(made), TYPES)


def profile(per_sample_s, gradient_mb=100.0, batch=64):
    return Profile(
        batch=batch, compute=Compute(0.0, per_sample_s), sync=Sync("ring", gradient_mb=gradient_mb)
    )


def elastic(job_id, seconds=1000.0, arrival_s=0.0, most=8, **more):
    return Job(job_id, arrival_s, 1, duration_s=seconds, min_gpus=1, max_gpus=most, **more)


def yard_of(where, jobs, policy="market"):
    yard = Yard(where, parse_policy(policy).decide)
    for job in jobs:
        yard.handle(JobSubmitted(0.0, job))
    return yard


def decided(where, jobs, policy="market"):
    """Nodes' GPUs of every job after the first decision."""
    yard = yard_of(where, jobs, policy)
    yard.handle(DecisionDue(0.0))
    validate(yard)
    return {
        job_id: {s.node: s.gpus for s in held.shares} for job_id, held in yard.snapshot(0.0).target.items()
    }


def market_of(where, jobs, stage):
    """What a stage decides, and the speeds that it had to go by."""
    snapshot = yard_of(where, jobs).snapshot(0.0)
    return stage.shapes(snapshot, np.arange(len(jobs))), snapshot


def zoo_jobs(count, seed, most=8):
    g = np.random.default_rng(seed)
    names = g.choice(MODELS, count)
    seconds = (
        np.where(g.random(count) < 0.8, 10 ** g.uniform(1.5, 3, count), 10 ** g.uniform(3, 4, count)) * 60
    )
    return [
        elastic(
            f"j{i}", float(seconds[i]), most=most, model=str(names[i]), profile=zoo_profile(str(names[i]))
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_8_11_the_certificate_against_all_assignments(seed):
    where, jobs = cluster(V100=(1, 3), K80=(1, 3)), zoo_jobs(3, seed, most=4)
    chosen, snapshot = market_of(where, jobs, Market(gamma=0.0, exact=True))
    configs = np.array([c for c in product(range(4), range(4)) if 1 <= sum(c) <= 4])
    best, left = np.inf, snapshot.remaining_samples()
    took = [left[i] / snapshot.speed.mixed(job, configs) for i, job in enumerate(jobs)]
    for picks in product(range(len(configs)), repeat=3):
        if (configs[list(picks)].sum(axis=0) <= 3).all():
            best = min(best, sum(took[i][k] for i, k in enumerate(picks)))
    assert chosen.notes["cost"] == pytest.approx(best, rel=1e-6)
    assert (chosen.shapes.by_type.sum(axis=0) <= 3).all()
    for stage in (
        Market(gamma=0.0),
        Market(gamma=0.0, samples=16),
        Market(gamma=0.0, samples=1),
        Market("category", gamma=0.0),
    ):
        notes = market_of(where, jobs, stage)[0].notes
        assert notes["lower_bound"] <= best * (1 + 1e-9), stage.engine
        assert best * (1 - 1e-9) <= notes["cost"] <= 1.0204 * best
        assert notes["gap"] == pytest.approx(notes["cost"] / notes["lower_bound"] - 1)


def test_prices_name_the_types():
    where = cluster(V100=(2, 4), K80=(2, 4))
    notes = market_of(where, zoo_jobs(12, 0), Market())[0].notes
    assert list(notes["prices"]) == list(yard_of(where, []).snapshot(0.0).nodes.types)
    assert notes["prices"]["V100"] > notes["prices"]["K80"] >= 0
    assert 0 < notes["jain_index"] <= 1
    assert notes["worst_finish_time_ratio"] > 0


@pytest.mark.parametrize("policy", ENGINES)
def test_the_job_that_needs_it_gets_the_fast_type(policy):
    same, picky = profile({"V100": 0.01, "K80": 0.01}), profile({"V100": 0.01, "K80": 0.2})
    jobs = [elastic("same", most=1, profile=same), elastic("picky", most=1, profile=picky)]
    assert decided(cluster(V100=(1, 1), K80=(1, 1)), jobs, policy) == {
        "same": {"K80-0": 1},
        "picky": {"V100-0": 1},
    }


@pytest.mark.parametrize("policy", ENGINES)
def test_workers_of_a_type_share_a_node(policy):
    jobs = [elastic("one", most=4, profile=profile({"V100": 0.02, "K80": 0.1}, 1.0))]
    assert decided(cluster(V100=(3, 4), K80=(1, 4)), jobs, policy) == {"one": {"V100-0": 4}}


@pytest.mark.parametrize("policy", ENGINES)
def test_nobody_there(policy):
    assert decided(cluster(V100=(1, 2), K80=(1, 2)), [], policy) == {}


@pytest.mark.parametrize("policy", ENGINES)
def test_more_jobs_than_workers(policy):
    where, jobs = cluster(V100=(1, 2), K80=(1, 1)), zoo_jobs(9, 1)
    assert len(decided(where, jobs, policy)) == 3
    assert checked(where, jobs, policy).summary()["completed"] == 9


@pytest.mark.parametrize("policy", ENGINES)
def test_one_job_and_one_type(policy):
    where = cluster(V100=(2, 4))
    held = decided(where, [elastic("a", profile=profile({"V100": 0.02}, 1.0))], policy)
    assert sum(held["a"].values()) == 8
    assert checked(where, zoo_jobs(10, 0), policy).summary()["completed"] == 10


@pytest.mark.parametrize("policy", ENGINES)
def test_jobs_stay_on_their_type(policy):
    where = cluster(V100=(1, 4), P100=(1, 2), K80=(1, 4))
    slow = profile({"V100": 0.01, "P100": 0.02, "K80": 0.1})
    jobs = [elastic(f"j{i}", 100.0 * (i + 1), gpu_type="K80", profile=slow) for i in range(3)]
    held = decided(where, [*jobs, elastic("free", profile=slow)], policy)
    assert {node for job in jobs for node in held[job.job_id]} == {"K80-0"}
    assert "K80-0" not in held["free"]


@pytest.mark.parametrize("policy", ENGINES)
def test_rigid_jobs_get_what_they_ask_for_or_wait(policy):
    where = cluster(V100=(1, 4), K80=(1, 4))
    jobs = [Job(f"j{i}", 0.0, gpus, duration_s=100.0) for i, gpus in enumerate((3, 3, 2, 4))]
    held = decided(where, jobs, policy)
    assert all(sum(held[job.job_id].values()) == job.gpus for job in jobs if job.job_id in held)
    assert sum(sum(nodes.values()) for nodes in held.values()) >= 7
    assert checked(where, jobs, policy).summary()["completed"] == 4


@pytest.mark.parametrize("policy", ENGINES)
def test_least_and_most_workers_are_kept(policy):
    where = cluster(V100=(1, 4), P100=(1, 4), K80=(1, 4))
    jobs = [
        Job(f"j{i}", 0.0, 3, duration_s=500.0, min_gpus=2, max_gpus=5, profile=zoo_profile("resnet50"))
        for i in range(4)
    ]
    held = decided(where, jobs, policy)
    assert all(2 <= sum(nodes.values()) <= 5 for nodes in held.values())
    assert len(held) == 4


@pytest.mark.parametrize("policy", ENGINES)
def test_a_job_larger_than_any_type_mixes_them(policy):
    where = cluster(V100=(1, 2), P100=(1, 2), K80=(1, 2))
    assert decided(where, [Job("wide", 0.0, 5, duration_s=100.0)], policy)["wide"]
    result = checked(where, [Job("wide", 0.0, 5, duration_s=100.0), *zoo_jobs(3, 0)], policy)
    assert result.summary()["completed"] == 4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ENGINES)
def test_a_job_as_large_as_the_cluster_runs(policy, seed):
    where = cluster(K80=(1, 5), V100=(1, 1))
    result = checked(where, [Job("all", 0.0, 6, duration_s=100.0)], policy, seed=seed)
    assert result.summary()["completed"] == 1


@pytest.mark.parametrize("policy", ENGINES)
def test_a_rigid_job_runs_beside_one_that_could_take_everything(policy):
    """Sizes that suit the elastic job, 8 or 9 of 9 GPUs, leave the rigid one too few."""
    jobs = [
        Job("rigid", 0.0, 4, duration_s=1e5, gpu_type="P100"),
        Job("elastic", 0.0, 3, duration_s=6.0, min_gpus=2, max_gpus=42),
    ]
    running = decided(cluster(V100=(1, 5), P100=(1, 4)), jobs, policy)
    assert running["rigid"] == {"P100-0": 4}
    assert running["elastic"]["V100-0"] >= 2


@pytest.mark.parametrize("policy", ENGINES)
def test_nodes_that_are_down_are_not_for_sale(policy):
    where = cluster(V100=(1, 4), K80=(1, 4))
    yard = yard_of(where, zoo_jobs(4, 0), policy)
    yard.handle(NodeFailed(0.0, "V100-0"))
    yard.handle(DecisionDue(0.0))
    validate(yard)
    running = yard.snapshot(0.0).target.values()
    assert {share.node for held in running for share in held.shares} == {"K80-0"}
    failures = [Failure(50.0, "V100-0", 500.0), Failure(60.0, "K80-0", 10.0)]
    assert checked(where, zoo_jobs(4, 0), policy, failures).summary()["completed"] == 4


@pytest.mark.parametrize(
    "policy",
    ["fifo+market", "sjf+market", "fifo(fill=easy)+market(engine=category)", "market+tune", "market+opt"],
)
def test_with_other_stages(policy):
    where = cluster(V100=(2, 4), P100=(1, 4), K80=(1, 4))
    jobs = [
        elastic(
            f"j{i}", 600.0 * (1 + i % 5), 50.0 * i, model=MODELS[i % 6], profile=zoo_profile(MODELS[i % 6])
        )
        for i in range(16)
    ]
    result = checked(where, jobs, policy, restart_s=30.0)
    assert result.summary()["completed"] == 16


@pytest.mark.parametrize("policy", ENGINES)
def test_same_seed_same_bytes_in_rounds_too(policy):
    where, jobs = cluster(V100=(1, 4), P100=(1, 4), K80=(2, 4)), zoo_jobs(12, 3)
    for options in ({}, {"round_s": 3600.0}):
        one, two = (checked(where, jobs, policy, seed=5, restart_s=30.0, **options) for _ in "ab")
        assert jobs_csv(one) == jobs_csv(two)
        assert one.summary()["completed"] == 12


def test_a_move_that_does_not_pay_is_not_made():
    where = cluster(V100=(1, 1), K80=(1, 1))
    both = profile({"V100": 0.01, "K80": 0.011})
    jobs = [elastic("a", 100.0, most=1, profile=both), elastic("b", 1000.0, most=1, profile=both)]
    moved = [checked(where, jobs, "market", restart_s=cost) for cost in (0.0, 1e5)]
    starts = [sum(1 for c in r.story_of("b") if c.after.name == "RUNNING") for r in moved]
    assert starts == [2, 1]
    assert finishes(moved[1])["b"] < 1e5


@pytest.mark.parametrize("seed", range(3))
def test_19_favouring_short_jobs_pays_over_time(seed):
    where, jobs = cluster(V100=(3, 4), P100=(3, 4), K80=(2, 4)), zoo_jobs(20, seed)
    mean = [
        float(checked(where, jobs, f"market(gamma={gamma})", restart_s=30.0).outcomes.jct_s.mean())
        for gamma in (0, 1.5)
    ]
    assert mean[1] < 0.95 * mean[0]


def test_a_cap_is_fairer():
    where, jobs = cluster(V100=(3, 4), P100=(3, 4), K80=(2, 4)), zoo_jobs(20, 0)
    worst = [
        market_of(where, jobs, Market(gamma=0.0, fair=fair))[0].notes["worst_finish_time_ratio"]
        for fair in (None, 1.0)
    ]
    assert worst[1] < worst[0]


def test_a_plan_tells_its_certificate():
    policy, yard = parse_policy("market"), yard_of(cluster(V100=(1, 4), K80=(1, 4)), zoo_jobs(4, 0))
    notes = policy.decide(yard.snapshot(0.0)).notes
    assert {"cost", "lower_bound", "gap", "prices", "jain_index", "worst_finish_time_ratio"} <= set(notes)
