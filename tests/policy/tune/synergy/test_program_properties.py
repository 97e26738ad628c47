"""Synergy-OPT's linear programs against straightforward formulations and exhaustive search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from trainyard.policy.tune.synergy.amounts_program import Menus, best_shares
from trainyard.policy.tune.synergy.rounding import round_placement
from trainyard.policy.tune.synergy.seats_program import place_shares

FAST = settings(max_examples=150, deadline=None)
PROPORTIONAL = (3, 4, 1.0)  # CPUs, memory and value per GPU
OPTION = st.tuples(st.integers(0, 6), st.integers(0, 8), st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.2, 1.5, 2.5]))
MODEL = st.lists(OPTION, max_size=4)


@st.composite
def instances(draw, most_jobs):
    """Jobs of few models, which all could have their proportional share, on a cluster with exactly that."""
    models = draw(st.lists(MODEL, min_size=1, max_size=3))
    jobs = draw(
        st.lists(st.tuples(st.sampled_from([1, 1, 2, 4]), st.sampled_from(models)), max_size=most_jobs)
    )
    spare = draw(st.integers(0, 6))
    table = np.full((len(jobs), 5, 3), -np.inf)
    for row, (_, options) in zip(table, jobs, strict=True):
        row[: len(options) + 1] = [*options, PROPORTIONAL]
    gpus = np.array([gpus for gpus, _ in jobs], dtype=int)
    menus = Menus(gpus, table[..., 0], table[..., 1], table[..., 2], np.ones(len(jobs)))
    return menus, float(3 * gpus.sum() + spare), float(4 * gpus.sum() + spare)


def straightforward(menus, cpus, memory):
    """The linear program as it is written, one variable per job and option, by simplex."""
    jobs, options = np.isfinite(menus.value).nonzero()
    value, gpus = menus.value[jobs, options], menus.gpus[jobs]
    of_job = (np.arange(menus.gpus.size)[:, None] == jobs).astype(float)
    needs = [gpus * menus.cpus[jobs, options], gpus * menus.memory_gb[jobs, options]]
    a_ub = np.vstack([*needs, -of_job * value])
    b_ub = np.concatenate([[cpus, memory], -menus.floor])
    answer = linprog(-value, a_ub, b_ub, of_job, np.ones(menus.gpus.size), method="highs-ds")
    assert answer.status == 0
    return -answer.fun


def exhaustive(menus, cpus, memory):
    """The best whole options for all."""
    best = -np.inf
    for chosen in product(*(np.flatnonzero(value >= 1) for value in menus.value)):
        rows = np.arange(len(chosen)), np.array(chosen, dtype=int)
        fits = menus.gpus @ menus.cpus[rows] <= cpus and menus.gpus @ menus.memory_gb[rows] <= memory
        best = max(best, menus.value[rows].sum()) if fits else best
    return best


@FAST
@given(instances(most_jobs=12))
def test_classes_and_corners_change_nothing(instance):
    menus, cpus, memory = instance
    shares = best_shares(menus, cpus, memory)
    if menus.gpus.size:
        assert shares.objective == pytest.approx(straightforward(menus, cpus, memory), abs=1e-6)
    assert shares.objective >= menus.gpus.size - 1e-6
    assert np.all(shares.value >= 1 - 1e-6)
    assert menus.gpus @ shares.cpus <= cpus + 1e-6
    assert menus.gpus @ shares.memory_gb <= memory + 1e-6


@FAST
@given(instances(most_jobs=5))
def test_whole_options_are_as_good_as_exhaustive_search(instance):
    menus, cpus, memory = instance
    whole = best_shares(menus, cpus, memory, integer=True)
    assert whole.objective == pytest.approx(exhaustive(menus, cpus, memory), abs=1e-6)
    assert whole.objective <= best_shares(menus, cpus, memory).objective + 1e-6
    got = np.stack([whole.cpus, whole.memory_gb, whole.value])[:, :, None]
    offered = np.stack([menus.cpus, menus.memory_gb, menus.value])
    assert np.all((np.abs(got - offered) < 1e-9).all(axis=0).any(axis=1))


@st.composite
def placements(draw):
    """Jobs that use all CPUs and memory of identical nodes, on which they fit if they can be cut."""
    count, per_node = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 4, 8]))
    kind = st.tuples(st.sampled_from([1, 1, 2, 4, 9]), st.integers(0, 6), st.integers(0, 8))
    kinds = draw(st.lists(kind, min_size=1, max_size=4))
    jobs = draw(st.lists(st.sampled_from(kinds), max_size=count * per_node))
    gpus = np.array([job[0] for job in jobs], dtype=int)
    gpus, jobs = gpus[: (keep := int(np.sum(gpus.cumsum() <= count * per_node)))], jobs[:keep]
    cpus, memory = (np.array([job[i] for job in jobs], dtype=float) for i in (1, 2))
    stay = draw(st.lists(st.integers(-1, count - 1), min_size=keep, max_size=keep))
    full = [
        np.full(count, per_node),
        np.full(count, gpus @ cpus / count),
        np.full(count, gpus @ memory / count),
    ]
    return (gpus, cpus, memory), full, np.array(stay, dtype=int)


def split_jobs(fractions):
    return np.unique(fractions.job[fractions.fraction < 1 - 1e-6]).size


def stay_as_written(jobs, full, stay):
    """The largest sum of fractions that stay, one variable per job and node."""
    gpus, cpus, memory = jobs
    n, nodes = gpus.size, full[0].size
    gain = (stay[:, None] == np.arange(nodes)).astype(float).ravel()
    needs = [np.kron(need, np.eye(nodes)) for need in (gpus, gpus * cpus, gpus * memory)]
    b_ub = np.concatenate([full[0], full[1] * (1 + 1e-6), full[2] * (1 + 1e-6)])
    answer = linprog(-gain, np.vstack(needs), b_ub, np.kron(np.eye(n), np.ones(nodes)), np.ones(n))
    return -answer.fun


@FAST
@given(placements())
def test_fractions_fit_and_few_jobs_are_split(placement):
    jobs, full, stay = placement
    gpus, cpus, memory = jobs
    fractions = place_shares(*jobs, *full, stay)
    part, job = fractions.fraction, fractions.job
    assert np.bincount(job, part, gpus.size) == pytest.approx(np.ones(gpus.size))
    assert np.all(part > 0)
    for need, room in zip((gpus, gpus * cpus, gpus * memory), full, strict=True):
        slack = 1e-5 * (1 + need.max(initial=0.0))  # counts are rounded to millionths of a job
        assert np.all(np.bincount(fractions.node, part * need[job], room.size) <= room * (1 + 2e-6) + slack)
    assert split_jobs(fractions) <= 3 * full[0].size


@FAST
@given(placements())
def test_no_answer_moves_less(placement):
    jobs, full, stay = placement
    if not stay.size:
        return
    fractions = place_shares(*jobs, *full, stay)
    stayed = stay[fractions.job] == fractions.node
    best = stay_as_written(jobs, full, stay)
    assert fractions.fraction[stayed].sum() <= best + 1e-4
    whole = fractions.fraction > 1 - 1e-6
    assert np.count_nonzero(stayed & whole) >= best - split_jobs(fractions) - 1e-4


@FAST
@given(placements())
def test_rounding_places_everybody_and_gives_no_gpu_twice(placement):
    jobs, full, stay = placement
    gpus = jobs[0]
    fractions = place_shares(*jobs, *full, stay)
    placed = round_placement(fractions, gpus, full[0])
    assert np.all(np.bincount(placed.job, placed.gpus, gpus.size) == gpus)
    assert np.all(np.bincount(placed.node, placed.gpus, full[0].size) <= full[0])
    assert np.all(placed.gpus > 0)
    whole = fractions.fraction > 1 - 1e-6
    kept = set(zip(placed.job.tolist(), placed.node.tolist(), strict=True))
    assert kept >= set(zip(fractions.job[whole].tolist(), fractions.node[whole].tolist(), strict=True))


@FAST
@given(st.integers(1, 6), st.lists(st.sampled_from([1, 2, 4]), max_size=12), st.data())
def test_nothing_moves_that_fits_where_it_is(count, sizes, data):
    gpus = np.array(sizes, dtype=int)
    stay, cpus = (
        np.array([data.draw(st.integers(0, most)) for _ in sizes], dtype=type_)
        for most, type_ in ((count - 1, int), (5, float))
    )
    full = [np.bincount(stay, need, count) for need in (gpus, gpus * cpus, gpus * cpus)]
    fractions = place_shares(gpus, cpus, cpus, *full, stay)
    placed = round_placement(fractions, gpus, full[0].astype(int))
    assert sorted(zip(placed.job.tolist(), placed.node.tolist(), strict=True)) == list(
        enumerate(stay.tolist())
    )
