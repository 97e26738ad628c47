"""What jobs ask for: GPU counts, mixtures, classes, tables and types."""

from __future__ import annotations

import numpy as np
import pytest

from trainyard.trace.presets import preset, preset_names
from trainyard.trace.workload import ByClass, ByTable, ByType, GpuCounts, Mixture, couple, draw_labels


def rng(seed=0):
    return np.random.default_rng(seed)


def exactly(seconds, **more):
    """A mixture that always gives the same run time."""
    return Mixture(np.array([1.0]), np.array([np.log(seconds)]), np.array([0.0]), 1e9, **more)


def test_shares_of_gpu_counts_need_not_add_up_to_one():
    counts = GpuCounts.of({"1": 3, "8": 1})
    assert counts.gpus.tolist() == [1, 8]
    assert counts.shares.tolist() == [0.75, 0.25]
    drawn = counts.draw(4_000, rng())
    assert set(drawn.tolist()) == {1, 8}
    assert (drawn == 8).mean() == pytest.approx(0.25, abs=0.03)


def test_a_mixture_takes_its_parts_by_weight():
    mixture = Mixture(np.array([0.8, 0.2]), np.log([10.0, 1000.0]), np.zeros(2), 1e6)
    times = mixture.draw(5_000, rng())
    assert sorted(set(times.round(6))) == [10, 1000]
    assert (times > 100).mean() == pytest.approx(0.2, abs=0.03)


def test_a_lognormal_has_its_median_and_deviation():
    times = np.log(Mixture(np.array([1.0]), np.array([3.0]), np.array([0.5]), 1e9).draw(20_000, rng()))
    assert times.mean() == pytest.approx(3, abs=0.02)
    assert times.std() == pytest.approx(0.5, abs=0.02)


def test_what_is_above_the_maximum_is_clamped_or_drawn_again():
    whole = {"weights": np.array([1.0]), "mu": np.array([0.0]), "sigma": np.array([1.0]), "max_s": 1.0}
    clamped = Mixture(**whole, clamped=True).draw(4_000, rng())
    again = Mixture(**whole).draw(4_000, rng())
    assert clamped.max() == 1
    assert (clamped == 1).mean() == pytest.approx(0.5, abs=0.04)
    assert again.max() < 1
    assert np.median(again) == pytest.approx(np.exp(-0.6745), rel=0.05)  # the quarter of the whole


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 10), (2, 20), (4, 20), (5, 50), (64, 50)])
def test_a_class_holds_up_to_the_next_one(gpus, seconds):
    sizes = GpuCounts.of({str(gpus): 1})
    classes = {5: exactly(50), 1: exactly(10), 2: exactly(20)}
    assert ByClass(sizes, classes).draw(3, rng()).duration_s.tolist() == [seconds] * 3


def test_jobs_of_several_classes_keep_their_own_times():
    asked = ByClass(GpuCounts.of({"1": 1, "8": 1}), {1: exactly(10), 8: exactly(99)}).draw(200, rng())
    assert {(g, s) for g, s in zip(asked.gpus.tolist(), asked.duration_s.tolist(), strict=True)} == {
        (1, 10),
        (8, 99),
    }
    assert asked.types is None


def test_a_table_is_at_powers_of_two():
    """A quarter of the jobs at 1 s, half of them up to 2 s, all up to 4 s; shares of 80 are made whole."""
    table = ByTable(GpuCounts.of({"1": 1}), np.array([0.2, 0.4, 0.8]), 0.0)
    times = table.draw(20_000, rng()).duration_s
    assert (times.min(), times.max()) == (1, 4)
    # Between the powers the logarithm is drawn evenly; what is below 1.5 s is rounded to 1 s.
    assert (times == 1).mean() == pytest.approx(0.25 + 0.25 * np.log2(1.5), abs=0.015)
    assert (times == 4).mean() == pytest.approx(0.5 * (2 - np.log2(3.5)), abs=0.015)


def test_types_have_their_own_sizes_and_times():
    parts = {"a": (GpuCounts.of({"2": 1}), exactly(10)), "b": (GpuCounts.of({"16": 1}), exactly(500))}
    asked = ByType({"a": 9, "b": 1}, parts).draw(2_000, rng())
    rows = set(zip(asked.types.tolist(), asked.gpus.tolist(), asked.duration_s.tolist(), strict=True))
    assert rows == {("a", 2, 10), ("b", 16, 500)}
    assert (asked.types == "b").mean() == pytest.approx(0.1, abs=0.02)


def test_no_job_runs_for_less_than_a_second():
    asked = ByClass(GpuCounts.of({"1": 1}), {1: exactly(0.01)}).draw(5, rng())
    assert asked.duration_s.tolist() == [1] * 5


def test_run_times_are_whole_seconds():
    asked = ByClass(GpuCounts.of({"1": 1}), {1: exactly(7.6)}).draw(2, rng())
    assert asked.duration_s.tolist() == [8, 8]


def test_without_coupling_nothing_moves():
    times = np.array([3.0, 1.0, 2.0])
    assert couple(np.array([1, 2, 3]), times, 0.0, rng()) is times


@pytest.mark.parametrize("coupling", [-0.9, -0.4, 0.4, 0.9])
def test_coupling_is_the_correlation_of_the_ranks(coupling):
    gpus, times = np.arange(4_000), rng(1).exponential(size=4_000)
    coupled = couple(gpus, times, coupling, rng(2))
    ranks = np.argsort(np.argsort(coupled))
    # Of a Gaussian copula, Spearman's correlation is 6 / pi x asin(r / 2).
    expected = 6 / np.pi * np.arcsin(coupling / 2)
    assert np.corrcoef(gpus, ranks)[0, 1] == pytest.approx(expected, abs=0.03)


def test_full_coupling_sorts_by_size():
    coupled = couple(np.array([4, 1, 2]), np.array([30.0, 10.0, 20.0]), 1.0, rng())
    assert coupled.tolist() == [30, 10, 20]


def test_labels_without_shares_are_empty():
    assert draw_labels({}, 3, rng()).tolist() == ["", "", ""]
    assert set(draw_labels({"x": 1, "y": 0}, 50, rng()).tolist()) == {"x"}


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_whole(name):
    facts = preset(name)
    assert facts.source
    assert facts.jobs > 1000
    assert facts.arrivals.hourly.shape == (168,)
    assert (facts.arrivals.hourly >= 0).all()
    assert facts.arrivals.batches.pmf.sum() <= 1 + 1e-9
    assert {"median_s", "p95_s", "mean_gpus"} <= set(facts.expected)


def test_classes_are_named_by_their_fewest_gpus():
    classes = preset("philly").workload.classes
    assert sorted(classes) == [1, 2, 5, 9]
    for mixture in classes.values():
        assert mixture.weights.sum() == pytest.approx(1)
