"""The reproduction of doubling for ring jobs: its oracle, its workload, tiny experiments, and its tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from trainyard.cli.study.reproduce import PAPERS
from trainyard.model.speed import SpeedModel
from trainyard.reproduce.ring import decisions, theirs
from trainyard.reproduce.ring import paper as ring
from trainyard.reproduce.ring.curves import CURVES, draw_curve, trap
from trainyard.reproduce.ring.decisions import Instance, draw_instance
from trainyard.reproduce.ring.oracle import least_total_s
from trainyard.reproduce.ring.runs import DOUBLING, DOUBLING_ALWAYS, EXPLORE, PLUS_ONE, Run
from trainyard.reproduce.ring.scale import Scale
from trainyard.reproduce.ring.workload import (
    EXTREME,
    GPUS,
    LEVELS,
    MODERATE,
    NONE,
    Pattern,
    Phase,
    Workload,
    ring_cluster,
    ring_jobs,
)


@pytest.mark.parametrize("seed", range(20))
def test_the_oracle_finds_what_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    gpus, jobs = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    sizes = [sorted(rng.choice(np.arange(1, gpus + 1), 3, replace=False).tolist()) for _ in range(jobs)]
    seconds = rng.uniform(1, 10, (jobs, 3)).tolist()
    totals = [
        sum(times[k] for times, k in zip(seconds, picked, strict=True))
        for picked in product(range(3), repeat=jobs)
        if sum(own[k] for own, k in zip(sizes, picked, strict=True)) <= gpus
    ]
    assert least_total_s(sizes, seconds, gpus) == pytest.approx(min(totals, default=np.inf))


def test_traps_stop_one_more_worker_and_not_doubling():
    alone = Instance((1.0,), (trap(np.arange(1, 17)),), 16)
    assert (alone.by_doubling().tolist(), alone.by_adding().tolist()) == ([16], [2])
    many = Instance((5.0, 4.0, 3.0, 2.0, 1.0, 1.0), (trap(np.arange(1, 65)),) * 6, 64)
    assert many.by_doubling().tolist() == [16, 16, 8, 8, 8, 8]
    assert many.by_adding().tolist() == [2] * 6


def test_on_smooth_curves_one_more_worker_is_the_optimum_and_doubling_that_of_powers_of_two():
    smooth = Instance((10.0, 8.0, 6.0), tuple(np.arange(1.0, 9.0) ** e for e in (0.9, 0.5, 0.7)), 8)
    doubling, adding = smooth.by_doubling(), smooth.by_adding()
    assert (doubling.tolist(), adding.tolist()) == ([4, 2, 2], [3, 3, 2])
    assert smooth.total_s(doubling) == pytest.approx(12.2220, abs=1e-4)
    assert smooth.total_s(adding) == pytest.approx(12.0326, abs=1e-4)
    assert smooth.power_optimum_s() == pytest.approx(smooth.total_s(doubling))
    assert smooth.optimum_s() == pytest.approx(smooth.total_s(adding))


@pytest.mark.parametrize("curve", CURVES)
def test_nobody_beats_the_optimum(curve):
    rng = np.random.default_rng(1)
    for _ in range(10):
        instance = draw_instance(curve, rng)
        for sizes in (instance.by_doubling(), instance.by_adding()):
            assert sizes.min() >= 1
            assert sizes.sum() <= instance.gpus
            assert instance.total_s(sizes) >= instance.optimum_s() * (1 - 1e-9)
        assert instance.power_optimum_s() >= instance.optimum_s() * (1 - 1e-9)


def test_curves_are_what_they_are_called():
    curves = {kind: draw_curve(kind, np.random.default_rng(3), 16) for kind in CURVES}
    assert all(speed[0] == 1 for speed in curves.values())
    assert curves["trap"][8] < curves["trap"][7] < curves["trap"][15]
    assert np.all(np.diff(curves["power law"]) > 0)
    assert np.all(curves["ring allowed"] >= curves["large gradients"])


def test_jobs_take_as_long_as_is_remembered():
    speed = SpeedModel(ring_cluster())
    for size, minutes in theirs.MINUTES.items():
        jobs = ring_jobs(Workload(EXTREME, 0), size)
        (took_s,) = {job.samples / speed.reference_rate(job) for job in jobs}
        assert took_s == pytest.approx(60 * minutes)


def test_patterns_of_arrival():
    pattern = Pattern("p", (Phase(1, 100.0), Phase(3, 0.0), Phase(2000, 50.0)), spread=1.0)
    jobs = ring_jobs(Workload(pattern, 7))
    arrivals = [job.arrival_s for job in jobs]
    assert arrivals[0] == arrivals[3] > 0
    assert (arrivals[-1] - arrivals[3]) / 2000 == pytest.approx(50, rel=0.1)
    assert np.mean([job.samples for job in jobs]) == pytest.approx(1e6, rel=0.1)
    assert (jobs[0].least_gpus, jobs[0].most_gpus) == (1, 8)
    assert jobs == ring_jobs(Workload(pattern, 7))


def test_one_job_alone_takes_its_shortest_time():
    alone = Workload(Pattern("one", (Phase(1, 10.0),)), 0)
    assert Run(DOUBLING_ALWAYS, alone, restart_s=0.0).carry_out().average_h == pytest.approx(84 / 60)
    assert Run("fifo", alone, size=2).carry_out().average_h == pytest.approx(232 / 60)


def test_rounds_and_trials_cost_time():
    few = Workload(Pattern("few", (Phase(6, 1000.0),)), 0)
    eager, rounds, learning = (
        run.carry_out() for run in (Run(DOUBLING, few), Run(DOUBLING, few, round_s=3600.0), Run(EXPLORE, few))
    )
    assert rounds.average_h > eager.average_h + 0.1
    assert learning.average_h > eager.average_h
    assert learning.restarts >= 3 * 6


def test_adding_stops_where_doubling_goes_on():
    trapped = Workload(Pattern("few", (Phase(10, 2000.0),)), 0, "trap", GPUS)
    assert Run(PLUS_ONE, trapped).carry_out().average_h > 2 * Run(DOUBLING, trapped).carry_out().average_h


@pytest.fixture(scope="module")
def tiny():
    """All experiments with one seed, and jobs that come as often as in the paper but are fewer."""
    levels = tuple(Pattern(level.name, (Phase(8, level.phases[0].gap_s),)) for level in LEVELS)
    others = (Pattern("bursts", (Phase(1, 3600.0), Phase(7, 0.0)), 1.5),)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "BATCH", 3)
        return ring.carry_out(Scale(range(1), range(1), levels, others), lambda done: None)


def test_every_experiment_makes_its_table(tiny):
    tables = {table.name: table for table in tiny.tables}
    rows = {name: len(table.rows) for name, table in tables.items()}
    assert rows == {
        **{"claims": 8, "contention": 10, "patterns": 4, "rounds": 4, "restarts": 8},
        **{"examples": 3, "optimum": 5, "growth": 15},
    }
    contention = {row[0]: row[1:] for row in tables["contention"].rows}
    assert contention["precompute"][3:] == ["7.63 / 2.63 / 1.40", "6.55 / 2.30 / 1.42"]
    assert contention["two"][3] is None
    assert "no ground truth" in tables["contention"].note
    for curve, *ratios, _, _ in tables["optimum"].rows:
        assert min(ratios) >= 1 - 1e-9, curve


def test_halvings_are_named(tiny):
    patterns = next(table for table in tiny.tables if table.name == "patterns")
    _, doubling, eight, four, two, one, gain, halved = patterns.rows[2]
    assert one > 2 * doubling
    assert f"one {one / doubling:.1f}x" in halved
    assert "eight" not in halved
    assert gain == min(eight, four, two, one) / doubling


def test_pictures(tiny):
    assert set(tiny.pictures) == {
        f"ring-{name}.png" for name in ("contention", "patterns", "costs", "curves")
    }
    assert all(picture.startswith(b"\x89PNG") for picture in tiny.pictures.values())


def test_restarts_that_cost_nothing_need_no_hysteresis(tiny):
    restarts = next(table for table in tiny.tables if table.name == "restarts")
    free, free_too = restarts.rows[:2]
    assert free[2:] == free_too[2:]


@pytest.mark.parametrize("level", [MODERATE, NONE], ids=lambda level: level.name)
def test_doubling_is_near_the_best_fixed_size(level):
    def mean_h(policy, size=None):
        return np.mean([Run(policy, Workload(level, seed), size).carry_out().average_h for seed in (0, 1)])

    fixed = [mean_h("fifo", size) for size in (8, 4, 2, 1)]
    assert mean_h(DOUBLING_ALWAYS) <= 1.03 * min(fixed)
    assert fixed[3] == max(fixed)


def test_eight_gpus_for_everybody_is_worst_when_there_is_no_room():
    runs = [Run("fifo", Workload(EXTREME, 0), size) for size in (1, 2, 4, 8)]
    hours = [run.carry_out().average_h for run in runs]
    assert hours[3] == max(hours)
    assert Run(DOUBLING_ALWAYS, Workload(EXTREME, 0)).carry_out().average_h <= 1.03 * min(hours)


def test_the_command_knows_it():
    assert PAPERS["ring"] == "trainyard.reproduce.ring.paper"
    assert ring.steps(True) < ring.steps(False)
