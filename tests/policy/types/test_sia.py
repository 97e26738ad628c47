"""Sia: its integer program against all choices of configurations, its costs against the paper's formulas."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from conftest import checked, set_numbers
from trainyard.core.events import DecisionDue, JobStopped, JobSubmitted
from trainyard.core.instructions import DecideAt, Start, Stop
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.sia import cheapest, configurations, move_factors, sizes
from trainyard.state.capacity import held_by_type, up_by_type

MODELS = ("resnet50", "vgg16", "bert-base", "lstm", "ncf")
TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}


def cluster(v100=1, k80=1, gpus=4):
    nodes = [Node(f"v{i}", "V100", gpus, 3.0 * gpus, 60.0 * gpus) for i in range(v100)]
    nodes += [Node(f"k{i}", "K80", gpus, 3.0 * gpus, 60.0 * gpus) for i in range(k80)]
    return Cluster("two", tuple(nodes), TYPES)


def random_jobs(rng, n):
    jobs = []
    for i in range(n):
        gpus = int(rng.choice([1, 2, 4]))
        least, most = (1, int(rng.choice([4, 8]))) if rng.random() < 0.7 else (None, None)
        profile = zoo_profile(MODELS[int(rng.integers(len(MODELS)))])
        weight = float(rng.choice([1.0, 2.0]))
        jobs.append(
            Job(
                f"j{i}", 0.0, gpus, samples=1e7, profile=profile, min_gpus=least, max_gpus=most, weight=weight
            )
        )
    return jobs


def objective(jobs, choice, speeds, capacity, factor):
    """The paper's sum by its words: (worth)^-0.5 of who runs, 1.1 of who waits; None if it does not fit."""
    used, total = np.zeros(2, dtype=int), 0.0
    for job, picked in zip(jobs, choice, strict=True):
        if picked is None:
            total += job.weight * 1.1
            continue
        type_, gpus, moves = picked
        used[type_] += gpus
        of_job = speeds[job.job_id]
        worth = of_job[type_, gpus] / min(of_job.values()) * job.least_gpus
        total += job.weight * (worth * (factor[job.job_id] if moves else 1.0)) ** -0.5
    return total if (used <= capacity).all() else None


def options_of(yard, job, here):
    """Every configuration by the paper's rule, and speeds, worked out on their own."""
    allowed = [1, 2, 4, 8] if job.elastic else [job.gpus]
    speeds, options = {}, [None]
    for type_, gpus in product(range(2), allowed):
        if job.least_gpus <= gpus <= min(job.most_gpus, 4):
            workers = np.zeros((1, 2), dtype=np.int64)
            workers[0, type_] = gpus
            shapes = yard.speed.proportional(workers)
            speeds[type_, gpus] = float(yard.speed.bulk(job.profile, shapes)[0])
            options.append((type_, gpus, here is not None and here != (type_, gpus)))
    return speeds, options


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("later_s", [None, 40.0, 4000.0])
def test_no_choice_of_configurations_is_better(seed, later_s):
    """At the start, and again with a new job beside those that run, where moves cost."""
    rng = np.random.default_rng(seed)
    jobs = random_jobs(rng, 4)
    decide = parse_policy("sia").decide
    yard = Yard(cluster(), decide, Rules(restart_s=30.0))
    for job in jobs[: 4 if later_s is None else 3]:
        yard.handle(JobSubmitted(0.0, job))
    if later_s is not None:
        carry_out(yard, yard.handle(DecisionDue(0.0)), 0.0)
        yard.handle(JobSubmitted(later_s, jobs[3]))
    now = later_s or 0.0
    snapshot = yard.snapshot(now)
    before = {job.job_id: mix_of(snapshot, job.job_id) for job in jobs}
    factor = {j.job_id: max(now / (now + 30.0), 1e-3) for j in jobs}
    found = [options_of(yard, job, before[job.job_id]) for job in jobs]
    speeds = {job.job_id: speed for job, (speed, _) in zip(jobs, found, strict=True)}
    capacity = np.array([4, 4])
    totals = (objective(jobs, choice, speeds, capacity, factor) for choice in product(*(o for _, o in found)))
    best = min(total for total in totals if total is not None)
    ranked = np.array([snapshot.table.of[job.job_id].row for job in jobs])
    held = held_by_type(snapshot)
    mix = parse_policy("sia").size.assign(snapshot, ranked, held[ranked], up_by_type(snapshot))
    chosen = []
    for job, row in zip(jobs, mix.tolist(), strict=True):
        own = next(((t, n) for t, n in enumerate(row) if n), None)
        chosen.append(
            None if own is None else (*own, before[job.job_id] is not None and before[job.job_id] != own)
        )
    got = objective(jobs, chosen, speeds, capacity, factor)
    assert got is not None
    assert got == pytest.approx(best, rel=2e-4)


def mix_of(snapshot, job_id):
    record = snapshot.table.of.get(job_id)
    held = held_by_type(snapshot)[record.row].tolist() if record is not None else [0, 0]
    return next(((t, n) for t, n in enumerate(held) if n), None)


def carry_out(yard, instructions, now):
    for instruction in instructions:
        if isinstance(instruction, Stop):
            carry_out(yard, yard.handle(JobStopped(now, instruction.job_id)), now)


def test_configurations_are_powers_of_two_then_whole_nodes():
    job = Job("a", 0.0, 1, duration_s=1.0, min_gpus=1, max_gpus=40)
    assert sizes(job, 8, 32) == [1, 2, 4, 8, 16, 24, 32]
    assert sizes(job, 6, 12) == [1, 2, 4, 6, 12]
    assert sizes(Job("b", 0.0, 3, duration_s=1.0), 8, 32) == [3]
    assert sizes(Job("c", 0.0, 3, duration_s=1.0), 8, 2) == []
    assert sizes(Job("d", 0.0, 5, duration_s=1.0, min_gpus=3, max_gpus=9), 8, 32) == [3, 4, 8]


def test_moving_costs_less_the_older_the_job():
    yard = Yard(cluster(), parse_policy("sia").decide, Rules(restart_s=30.0))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 1, duration_s=1e5, min_gpus=1, max_gpus=4)))
    yard.handle(DecisionDue(0.0))
    row = np.array([0])
    assert move_factors(yard.snapshot(300.0), row)[0] == pytest.approx(300 / 330)
    set_numbers(yard.snapshot(300.0), "a", restarts=3)
    assert move_factors(yard.snapshot(300.0), row)[0] == pytest.approx((300 - 90) / 330)
    assert move_factors(yard.snapshot(60.0), row)[0] == pytest.approx(1e-3)


def test_restarts_are_counted():
    """The snapshot knows how often a job restarted: once for every time it resumed."""
    jobs = [Job("long", 0.0, 1, duration_s=5e3, min_gpus=1, max_gpus=4)]
    jobs += [Job(f"j{i}", 400.0 * i, 4, duration_s=300.0) for i in range(1, 4)]
    result = checked(cluster(1, 0), jobs, "sia", restart_s=10.0)
    resumed = sum(change.cause == "resumed" for job in jobs for change in result.story_of(job.job_id))
    assert resumed == result.outcomes.restarts.sum() > 0


def test_every_job_runs_when_there_is_room():
    rng = np.random.default_rng(1)
    yard = Yard(cluster(2, 2), parse_policy("sia").decide)
    for job in random_jobs(rng, 6):
        yard.handle(JobSubmitted(0.0, job))
    started = [i for i in yard.handle(DecisionDue(0.0)) if isinstance(i, Start)]
    assert len(started) == 6


def test_it_asks_again_every_round():
    yard = Yard(cluster(), parse_policy("sia(round_s=50)").decide)
    yard.handle(JobSubmitted(20.0, Job("a", 20.0, 1, duration_s=1e5)))
    *_, wake = yard.handle(DecisionDue(20.0))
    assert wake == DecideAt(50.0)
    assert yard.handle(DecisionDue(30.0)) == []  # that still holds
    assert yard.handle(DecisionDue(50.0)) == [DecideAt(100.0)]


def test_search_takes_nothing_from_nothing():
    yard = Yard(cluster(), parse_policy("sia").decide)
    options = configurations(yard.snapshot(0.0), np.zeros(0, dtype=np.int64), np.array([4, 4]))
    assert cheapest(np.zeros(0), options, np.array([4, 4])).size == 0


@pytest.mark.parametrize(("given", "said"), [("p=0.5", "below 0"), ("penalty=1", "above 1")])
def test_wrong_parameters_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        parse_policy(f"sia({given})")
