"""Levels are found although the machine's speed drifts."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.profiling.drift import Measured, without_drift

LEVELS = {1.0: 480.0, 1.5: 700.0, 2.0: 930.0}


def drifting(drift, levels=LEVELS, off=lambda number, cpus: 1.0):
    return [
        Measured(number, cpus, level * factor * off(number, cpus))
        for number, factor in enumerate(drift)
        for cpus, level in levels.items()
    ]


drifts = st.lists(st.floats(0.7, 1.3), min_size=3, max_size=12)
speeds = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=5)


@given(drifts, speeds, st.randoms(use_true_random=False))
def test_levels_are_exact_whatever_the_drift_and_whatever_is_missing(drift, speeds, chance):
    levels = {float(cpus): speed for cpus, speed in enumerate(speeds, 1)}
    kept = [one for one in drifting(drift, levels) if one.round == 0 or chance.random() < 0.6]
    found = without_drift(kept)
    assert list(found) == list(levels)
    ratios = [found[cpus].samples_per_s / level for cpus, level in levels.items()]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-6)
    assert min(drift) - 1e-6 <= ratios[0] <= max(drift) + 1e-6


def test_the_typical_round_counts():
    found = without_drift(drifting([0.5, 0.9, 1.0, 1.1, 3.0]))
    assert {cpus: level.samples_per_s for cpus, level in found.items()} == pytest.approx(LEVELS)


def test_counts_that_join_later_are_not_compared_with_earlier_rounds():
    rows = drifting([0.5] * 4 + [1.0] * 4 + [0.8])
    found = without_drift([one for one in rows if one.cpus != 1.5 or one.round >= 4])
    assert found[1.5].samples_per_s / found[1.0].samples_per_s == pytest.approx(700 / 480)
    assert found[1.5].samples_per_s == pytest.approx(0.8 * 700)


def test_a_speed_far_off_hardly_counts():
    rows = drifting(
        [1.0, 0.8, 1.2, 0.9, 1.1], off=lambda number, cpus: 0.3 if (number, cpus) == (2, 1.5) else 1
    )
    found = without_drift(rows)
    assert found[1.5].samples_per_s / found[2.0].samples_per_s == pytest.approx(700 / 930, rel=0.01)


def test_the_standard_error_is_that_of_many_tries():
    chance, errors, told = random.Random(1), [], []
    for _ in range(200):
        drift = [math.exp(chance.uniform(-0.3, 0.3)) for _ in range(8)]
        found = without_drift(drifting(drift, off=lambda *_: math.exp(chance.gauss(0, 0.05))))
        logs = {cpus: math.log(level.samples_per_s / LEVELS[cpus]) for cpus, level in found.items()}
        errors.append(logs[1.5] - sum(logs.values()) / 3)
        told.append(found[1.5].unsure)
    true = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert sum(told) / len(told) == pytest.approx(true, rel=0.25)


def test_what_one_round_cannot_tell():
    assert without_drift(drifting([1.0]))[1.5].unsure == math.inf
    alone = without_drift(drifting([0.9, 1.0, 1.2], {1.0: 100.0}))
    assert alone[1.0] == (pytest.approx(100), 0.0)
