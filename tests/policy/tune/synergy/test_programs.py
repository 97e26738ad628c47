"""Synergy-OPT's linear programs on instances with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from cases import case
from trainyard.policy.tune.synergy.amounts_program import Menus, best_shares
from trainyard.policy.tune.synergy.classes import classes_of, deal
from trainyard.policy.tune.synergy.rounding import round_placement
from trainyard.policy.tune.synergy.seats_program import Fractions, place_shares


def synergy_menus(jobs):
    models = case("synergy/models")
    cpus, memory = np.meshgrid(models["cpu_axis"], models["mem_axis_gb"], indexing="ij")
    tables = [np.ravel(models["models"][model]["tput"]) for model, _ in jobs]
    return Menus(
        gpus=np.array([gpus for _, gpus in jobs]),
        cpus=np.tile(cpus.ravel(), (len(jobs), 1)),
        memory_gb=np.tile(memory.ravel(), (len(jobs), 1)),
        value=np.array(tables, dtype=float),
        floor=np.ones(len(jobs)),
    )


@pytest.mark.parametrize(
    ("integer", "solver"), [(False, "lp_highs"), (True, "ilp_highs"), (True, "ilp_glpk")]
)
def test_synergys_own_objectives(integer, solver):
    cases = case("synergy/opt_phase1")
    assert len(cases) == 21
    for number, given in enumerate(cases):
        menus = synergy_menus(given["jobs"])
        cpus, memory = 24.0 * given["servers"], 500.0 * given["servers"]
        shares = best_shares(menus, cpus, memory, integer)
        assert shares.objective == pytest.approx(given["objective"][solver], abs=1e-6), number
        assert menus.gpus @ shares.cpus <= cpus + 1e-6
        assert menus.gpus @ shares.memory_gb <= memory + 1e-6


def menus_of(*jobs, floor=1.0):
    """Each job: GPUs and options (cpus, memory, value), padded to the same length."""
    longest = max(len(options) for _, options in jobs)
    padding = (0.0, 0.0, -np.inf)
    table = np.array([[*options, *[padding] * (longest - len(options))] for _, options in jobs], dtype=float)
    gpus = np.array([gpus for gpus, _ in jobs])
    return Menus(gpus, table[..., 0], table[..., 1], table[..., 2], np.full(len(jobs), floor))


def test_one_cpu_to_spare_goes_to_the_first_of_two_identical_jobs():
    job = (1, [(1, 1, 1.0), (2, 1, 1.5)])
    shares = best_shares(menus_of(job, job), 3.0, 2.0)
    assert shares.cpus.tolist() == [2.0, 1.0]
    assert shares.value.tolist() == [1.5, 1.0]
    assert shares.objective == 2.5


def test_at_most_two_jobs_get_a_mixture():
    job = (1, [(1, 1, 1.0), (2, 2, 1.5)])
    shares = best_shares(menus_of(*[job] * 9), 13.5, 14.0)
    assert shares.objective == pytest.approx(9 + 4.5 / 2)
    assert np.count_nonzero(~np.isin(shares.cpus, [1.0, 2.0])) <= 2


def test_a_mixture_with_an_option_below_the_floor_keeps_to_the_floor():
    # Half of each is at the floor and needs 2 CPUs, one less than the proportional share.
    job = (1, [(0, 1, 0.0), (4, 1, 2.0), (3, 1, 1.0)])
    shares = best_shares(menus_of(job, job), 4.0, 2.0)
    assert shares.value == pytest.approx([1.0, 1.0])
    assert shares.cpus == pytest.approx([2.0, 2.0])
    assert best_shares(menus_of(job, job), 4.0, 2.0, integer=True) is None


def test_shares_count_for_every_gpu():
    options = [(1, 1, 1.0), (2, 1, 2.0)]
    shares = best_shares(menus_of((4, options), (1, options)), 6.0, 5.0, integer=True)
    assert shares.cpus.tolist() == [1.0, 2.0]


def test_no_answer_if_the_floor_is_out_of_reach():
    assert best_shares(menus_of((1, [(1, 1, 0.5)])), 9.0, 9.0) is None
    assert best_shares(menus_of((1, [(1, 1, 1.0)])), 0.5, 9.0) is None


@pytest.mark.parametrize("integer", [False, True])
def test_nobody_asks_for_nothing(integer):
    nobody, nothing = np.zeros(0, dtype=int), np.zeros((0, 3))
    shares = best_shares(Menus(nobody, nothing, nothing, nothing, np.zeros(0)), 1.0, 1.0, integer)
    assert shares.objective == 0
    fractions = place_shares(nobody, shares.cpus, shares.memory_gb, *nodes(2), nobody)
    assert fractions.job.size == 0
    assert round_placement(fractions, nobody, nodes(2)[0]).job.size == 0


def test_classes_are_numbered_as_they_appear():
    classes = classes_of(np.array([[2.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    assert classes.of.tolist() == [0, 1, 0]
    assert classes.first.tolist() == [0, 1]
    assert classes.size.tolist() == [2, 1]


def test_dealing_cuts_only_what_is_left_of_each_cell():
    pieces = deal(np.array([0, 0, 1]), np.array([2.25, 1.75, 1.0]), np.array([4, 1]))
    assert pieces.slot.tolist() == [0, 1, 2, 3, 3, 4]
    assert pieces.cell.tolist() == [0, 0, 1, 0, 1, 2]
    assert pieces.fraction == pytest.approx([1, 1, 1, 0.25, 0.75, 1])


def nodes(count, gpus=8, cpus=24.0, memory_gb=500.0):
    return np.full(count, gpus), np.full(count, cpus), np.full(count, memory_gb)


def as_pairs(placed):
    return sorted(zip(placed.job.tolist(), placed.node.tolist(), placed.gpus.tolist(), strict=True))


def test_nobody_moves_if_nobody_must():
    rng = np.random.default_rng(1)
    stay = rng.permutation(np.repeat(np.arange(16), 8))
    gpus, shares = np.ones(128, dtype=int), (np.full(128, 3.0), np.full(128, 62.5))
    fractions = place_shares(gpus, *shares, *nodes(16), stay)
    assert np.all(fractions.fraction == 1)
    placed = round_placement(fractions, gpus, nodes(16)[0])
    assert as_pairs(placed) == [(job, node, 1) for job, node in enumerate(stay.tolist())]


def test_only_as_many_move_as_must():
    # Three jobs of 12 CPUs on a node of 24: one of 2 GPUs changes places with a quarter of the job of 8.
    gpus, stay = np.array([4, 2, 2, 8]), np.array([0, 0, 0, 1])
    cpus = np.array([3.0, 6.0, 6.0, 0.0])
    fractions = place_shares(gpus, cpus, np.zeros(4), *nodes(2), stay)
    assert fractions.fraction[stay[fractions.job] == fractions.node].sum() == pytest.approx(2.75, abs=1e-4)


def test_no_room_for_the_shares():
    one = np.ones(1, dtype=int)
    assert place_shares(one, np.array([25.0]), np.ones(1), *nodes(1), -one) is None
    assert place_shares(9 * one, np.ones(1), np.ones(1), *nodes(1), -one) is None


def test_rounding_of_the_shares_is_forgiven():
    gpus = np.ones(24, dtype=int)
    cpus = np.full(24, 3.0 * (1 + 1e-8))
    assert place_shares(gpus, cpus, np.full(24, 62.5), *nodes(3), -gpus) is not None


def test_many_different_jobs_may_use_only_some_of_the_nodes(monkeypatch):
    monkeypatch.setattr("trainyard.policy.tune.synergy.seats_program.MOST_CELLS", 600)
    rng = np.random.default_rng(2)
    gpus, cpus = np.ones(128, dtype=int), rng.uniform(1, 4, 128)
    stay = rng.permutation(np.repeat(np.arange(16), 8))
    fractions = place_shares(gpus, cpus, np.full(128, 62.5), *nodes(16), stay)
    assert np.bincount(fractions.job, fractions.fraction) == pytest.approx(np.ones(128))
    used = np.bincount(fractions.node, fractions.fraction * cpus[fractions.job])
    assert used.max() <= 24 + 1e-3


def test_a_split_job_goes_where_most_of_it_is_if_there_is_room():
    split = Fractions(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.4, 0.6, 1.0]))
    gpus = np.array([1, 1])
    assert as_pairs(round_placement(split, gpus, np.array([1, 2]))) == [(0, 1, 1), (1, 1, 1)]
    assert as_pairs(round_placement(split, gpus, np.array([1, 1]))) == [(0, 0, 1), (1, 1, 1)]


def test_a_gang_spans_the_fewest_nodes():
    split = Fractions(np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([0.4, 0.3, 0.3]))
    gang = np.array([4])
    assert as_pairs(round_placement(split, gang, np.array([2, 2, 2, 4]))) == [(0, 3, 4)]
    assert as_pairs(round_placement(split, gang, np.array([2, 2, 2, 3]))) == [(0, 0, 2), (0, 1, 2)]
    assert as_pairs(round_placement(split, gang, np.array([2, 1, 1, 3]))) == [(0, 1, 1), (0, 3, 3)]


def test_who_finds_no_gpus_is_left_out():
    split = Fractions(np.array([0, 0]), np.array([0, 1]), np.array([0.5, 0.5]))
    assert round_placement(split, np.array([3]), np.array([1, 1])).job.size == 0
