"""Gavel: its programs against other formulations and closed forms, its rounds against its fractions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog

from conftest import checked
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Profile, Sync
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.gavel import Shares, equal_share, priorities, realise
from trainyard.policy.types.options import Options, options_of
from trainyard.sim.clock import Simulator
from trainyard.state.capacity import held_by_type, seconds_by_type

NONE = Sync(kind="none")


def gangs(speed, gpus):
    speed = np.array(speed, dtype=float)
    return Options(speed, np.array(gpus)[:, None, None] * np.eye(speed.shape[1], dtype=np.int64))


def random_case(rng):
    n, types = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    speed = rng.uniform(0.2, 5.0, (n, types)) * (rng.random((n, types)) > 0.15)
    speed[:, 0] = np.maximum(speed[:, 0], 0.1)  # everybody can run somewhere
    capacity = rng.integers(3, 7, types)
    return gangs(speed, rng.integers(1, 4, n)), capacity


def feasible(speed, gpus, capacity, need):
    """Whether fractions exist that give every job the speed it needs: one dense program, by dual simplex."""
    n, types = speed.shape
    rows, limits = [], []
    for j in range(n):
        row = np.zeros((n, types))
        row[j] = 1.0
        rows.append(row.ravel())
        limits.append(1.0)
        row = np.zeros((n, types))
        row[j] = -speed[j]
        rows.append(row.ravel())
        limits.append(-need[j])
    for t in range(types):
        row = np.zeros((n, types))
        row[:, t] = gpus
        rows.append(row.ravel())
        limits.append(capacity[t])
    answer = linprog(np.zeros(n * types), np.array(rows), limits, bounds=(0, 1), method="highs-ds")
    return answer.status == 0


def by_bisection(ok, low, high):
    """The largest number for which `ok` holds."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if ok(middle) else (low, middle)
    return low


def check_fractions(x, case, capacity):
    gpus = case.use[:, 0, 0]
    assert (x >= 0).all()
    assert (x.sum(axis=1) <= 1 + 1e-6).all()
    assert (gpus @ x <= capacity + 1e-6).all()
    assert not x[case.speed == 0].any()


@pytest.mark.parametrize("seed", range(12))
def test_largest_least_speed_as_by_bisection(seed):
    """Covers max-min and makespan, which differ only in what a job's speed is divided by."""
    rng = np.random.default_rng(seed)
    case, capacity = random_case(rng)
    per = rng.uniform(0.1, 100.0, len(case.speed))
    value = case.speed / per[:, None]
    x = Shares(case, capacity).most_even(value, case.speed)
    check_fractions(x, case, capacity)
    gpus = case.use[:, 0, 0]
    best = by_bisection(lambda z: feasible(value, gpus, capacity, np.full(len(per), z)), 0.0, 1e3)
    assert (value * x).sum(axis=1).min() == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_finish_time_fairness_as_by_bisection(seed):
    rng = np.random.default_rng(seed)
    case, capacity = random_case(rng)
    n, gpus = len(case.speed), case.use[:, 0, 0]
    left, lived, alone = rng.uniform(1, 1e4, n), rng.uniform(0, 1e3, n), rng.uniform(100, 1e4, n)
    x = Shares(case, capacity).fairest(case.speed, left, lived, alone, case.speed)
    check_fractions(x, case, capacity)
    ratio = ((lived + left / (x * case.speed).sum(axis=1)) / alone).max()

    def reaches(minus):
        spare = -minus * alone - lived
        return (spare > 0).all() and feasible(case.speed, gpus, capacity, left / spare)

    assert ratio == pytest.approx(-by_bisection(reaches, -1e5, 0.0), rel=3e-4)


@pytest.mark.parametrize("seed", range(5))
def test_total_throughput_of_single_workers_is_an_assignment(seed):
    rng = np.random.default_rng(seed)
    speed, capacity = rng.uniform(0.1, 1.0, (6, 3)), np.array([2, 1, 2])
    x = Shares(gangs(speed, np.ones(6, dtype=int)), capacity).most(speed)
    jobs, slots = linear_sum_assignment(speed[:, np.repeat(np.arange(3), capacity)], maximize=True)
    best = speed[:, np.repeat(np.arange(3), capacity)][jobs, slots].sum()
    assert (speed * x).sum() == pytest.approx(best, rel=1e-6)


def test_no_grid_point_is_better():
    """Two gangs on two types: all fractions in steps of 1/40."""
    case, capacity = gangs([[4.0, 1.0], [3.0, 2.0]], [2, 1]), np.array([2, 1])
    x = Shares(case, capacity).most_even(case.speed, case.speed)
    level = (case.speed * x).sum(axis=1).min()
    steps, best = np.linspace(0, 1, 41), 0.0
    for a, b, c, d in product(steps, repeat=4):
        if a + b <= 1 and c + d <= 1 and 2 * a + c <= 2 + 1e-9 and 2 * b + d <= 1 + 1e-9:
            best = max(best, min(4 * a + b, 3 * c + 2 * d))
    assert best <= level * (1 + 1e-5)
    assert level <= best + 0.1  # what half a step can make


class TestClosedForms:
    @pytest.mark.parametrize(("jobs", "gpus"), [(1, 3), (3, 3), (7, 3), (10, 4)])
    def test_equal_jobs_share_equally(self, jobs, gpus):
        case = gangs(np.full((jobs, 1), 5.0), np.ones(jobs, dtype=int))
        x = Shares(case, np.array([gpus])).most_even(case.speed, case.speed)
        assert x[:, 0] == pytest.approx(min(1.0, gpus / jobs), abs=1e-5)

    def test_the_example_of_the_paper(self):
        """Speeds (4,1), (3,1), (2,1) on one V100 and one K80: everybody gets 12/11 of an equal share."""
        case, capacity = gangs([[4, 1], [3, 1], [2, 1]], [1, 1, 1]), np.array([1, 1])
        value = case.speed / equal_share(case.speed, capacity, 3.0)[:, None]
        x = Shares(case, capacity).most_even(value, value)
        assert (value * x).sum(axis=1) == pytest.approx(12 / 11, rel=1e-5)
        assert x == pytest.approx(np.array([[0.45, 0.0], [0.45, 0.09], [0.09, 0.91]]), abs=0.01)

    def test_a_gang_twice_as_large_gets_half_the_time(self):
        """In max-min speed counts times the gang, as in the paper: equal GPU-time for equal speeds."""
        case, capacity = gangs([[1.0], [1.0]], [1, 2]), np.array([2])
        value = case.speed * np.array([[1.0], [2.0]])
        x = Shares(case, capacity).most_even(value, np.zeros_like(value))
        assert x[0, 0] == pytest.approx(2 * x[1, 0], rel=1e-4) or x[0, 0] == pytest.approx(1.0, abs=1e-5)
        assert (value * x).sum(axis=1).min() == pytest.approx(1.0, rel=1e-5)


class TestRounds:
    def test_who_has_received_least_of_its_fraction_goes_first(self):
        x = np.array([[0.5, 0.0], [0.5, 0.0], [0.2, 0.3]])
        spent, lived = np.array([[60.0, 0.0], [30.0, 0.0], [0.0, 50.0]]), np.full(3, 100.0)
        priority = priorities(x, spent, lived)
        assert priority[:2, 0] == pytest.approx([0.5 / 0.6, 0.5 / 0.3])
        assert priority[2, 0] == pytest.approx(0.2e9)
        assert priority[2, 1] == pytest.approx(0.3 / 0.5)

    def test_gangs_are_given_out_as_long_as_they_fit(self):
        case = gangs([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5]], [2, 2, 1])
        mix = np.zeros((3, 2), dtype=np.int64)
        realise(np.array([[3.0, 0], [2.0, 1.0], [1.0, 0.5]]), case, np.array([3, 1]), np.zeros(3, bool), mix)
        assert mix.tolist() == [[2, 0], [0, 0], [1, 0]]

    @pytest.mark.parametrize("objective", ["max-min", "ftf"])
    def test_time_received_tends_to_the_fractions(self, objective):
        """The paper's example, for five hundred rounds."""
        speeds = [(4, 1), (3, 1), (2, 1)]
        nodes = (Node("v", "V100", 1, 3.0, 50.0), Node("k", "K80", 1, 3.0, 50.0))
        cluster = Cluster("two", nodes, {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)})
        jobs = [
            Job(
                f"j{i}",
                0.0,
                1,
                samples=1e9,
                profile=Profile(compute=Compute(0.0, {"V100": 1 / a, "K80": 1 / b}), sync=NONE),
            )
            for i, (a, b) in enumerate(speeds)
        ]
        policy = parse_policy(f"gavel(objective={objective},round_s=100)")
        simulator = Simulator(cluster, jobs, policy, Rules(restart_s=0.0, until_s=5e4))
        simulator.run()
        snapshot = simulator.yard.snapshot(5e4)
        rows = np.array([snapshot.table.of[f"j{i}"].row for i in range(3)])
        spent = seconds_by_type(snapshot, held_by_type(snapshot))[rows]
        case = options_of(snapshot, rows, np.array([1, 1]))
        x = policy.size.fractions(snapshot, rows, case, np.array([1, 1]))
        assert spent.sum(axis=1) == pytest.approx(snapshot.executed_s()[rows], rel=1e-9)
        assert spent / 5e4 == pytest.approx(x, abs=0.02)

    def test_equal_jobs_take_turns(self):
        cluster = Cluster("one", (Node("v", "V100", 1, 3.0, 50.0),), {})
        jobs = [Job(f"j{i}", 0.0, 1, duration_s=3600.0) for i in range(2)]
        result = checked(cluster, jobs, "gavel", restart_s=0.0)
        assert sorted(result.outcomes.finish_s) == pytest.approx([6840.0, 7200.0])

    def test_nobody_is_stopped_between_rounds(self):
        cluster = Cluster("one", (Node("v", "V100", 2, 3.0, 50.0),), {})
        jobs = [Job("a", 0.0, 2, duration_s=3600.0), Job("b", 100.0, 2, duration_s=60.0)]
        result = checked(cluster, jobs, "gavel", restart_s=0.0)
        assert result.story_of("b")[2].time_s == 360.0

    def test_gpus_are_not_left_idle_between_rounds(self):
        cluster = Cluster("one", (Node("v", "V100", 2, 3.0, 50.0),), {})
        result = checked(cluster, [Job("a", 100.0, 2, duration_s=60.0)], "gavel")
        assert result.outcomes.start_s[0] == 100.0


def test_a_gang_that_no_type_holds_gets_several():
    nodes = (Node("v", "V100", 2, 6.0, 100.0), Node("k", "K80", 2, 6.0, 100.0))
    yard = Yard(Cluster("two", nodes, {"K80": GpuType("K80", 0.5)}), parse_policy("gavel").decide)
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 3, duration_s=60.0)))
    (start,) = [i for i in yard.handle(DecisionDue(0.0)) if hasattr(i, "allocation")]
    assert start.allocation.workers == (("v", 2), ("k", 1))


def test_a_wrong_round_is_refused():
    with pytest.raises(InputError, match="round_s is 0; give seconds above 0"):
        parse_policy("gavel(round_s=0)")


def test_next_to_nothing_counts_as_nothing():
    """A node that fails in the moment of a start leaves a job with a time too short to divide by."""
    x, lived = np.array([[0.5], [0.5], [0.5]]), np.array([1.0, 1.0, 1.0])
    found = priorities(x, np.array([[2e-309], [0.0], [0.25]]), lived)
    assert found.tolist() == [[0.5e9], [0.5e9], [2.0]]
