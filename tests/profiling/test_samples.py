"""Samples, the shapes they stand for, and the unknowns that they can tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.model.profile import Compute, Input, Profile, Sync
from trainyard.profiling.least_squares import nonnegative
from trainyard.profiling.samples import Sample, Setting, gpu_types, predicted, shapes_of, wrong_in
from trainyard.profiling.terms import profile_of, terms_of


@pytest.mark.parametrize("value", [1e-6, 1.0, 1e12])
def test_speeds_within_the_bounds_can_be(value):
    assert wrong_in(Sample(1, value, cpus=value)) is None
    assert wrong_in(Sample(1, value)) is None  # CPUs without end are more than enough


@pytest.mark.parametrize(
    ("sample", "field", "said"),
    [
        (Sample(1, 9e-7), "samples_per_s", "9e-07 is too small; it must be from 1e-06 to 1e+12"),
        (Sample(1, 2e12), "samples_per_s", "2e+12 is too large; it must be from 1e-06 to 1e+12"),
        (Sample(1, math.inf), "samples_per_s", "inf is too large; it must be from 1e-06 to 1e+12"),
        (Sample(1, 1.0, cpus=0.0), "cpus", "0 is too small; it must be from 1e-06 to 1e+12"),
        (Sample(1, 1.0, cpus=1e13), "cpus", "1e+13 is too large; it must be from 1e-06 to 1e+12"),
        (Sample(2, 1.0, nodes=3), "nodes", "3 nodes for 2 workers; it must be at most 2"),
    ],
)
def test_what_cannot_be_is_named(sample, field, said):
    assert wrong_in(sample) == (field, said)


def test_as_many_nodes_as_workers_can_be():
    assert wrong_in(Sample(2, 1.0, nodes=2)) is None


def test_shapes_have_a_column_for_each_type():
    samples = [
        Sample(2, 1.0, gpu_type="P100"),
        Sample(3, 1.0, nodes=2, servers=1),
        Sample(4, 1.0, gpu_type="P100"),
    ]
    shapes = shapes_of(samples, Setting(network_gbps=7.0, intra_gbps=70.0, storage_mbps=300.0))
    assert gpu_types(samples) == ["P100", samples[1].gpu_type]
    assert shapes.workers.tolist() == [[2, 0], [0, 3], [4, 0]]
    assert shapes.servers.tolist() == [0, 1, 0]
    assert shapes.bandwidth_gbps.tolist() == [70, 7, 70]  # between nodes only if there are several
    assert shapes.storage_mbps.tolist() == [300] * 3


def test_a_profile_is_asked_by_the_type_of_each_sample():
    profile = Profile(batch=10, compute=Compute(0.0, {"fast": 0.1, "slow": 0.4}))
    samples = [
        Sample(1, 1.0, gpu_type="slow"),
        Sample(1, 1.0, gpu_type="fast"),
        Sample(2, 1.0, gpu_type="fast"),
    ]
    assert predicted(profile, samples, Setting(batch=10)) == pytest.approx([2.5, 10, 20])


def named(samples, setting):
    return {term.name: (term.side, term.seconds.tolist()) for term in terms_of(samples, setting)}


def test_a_worker_alone_tells_little():
    found = named([Sample(1, 5.0, gpu_type="g")], Setting(batch=8))
    assert found == {
        "per_sample_s g": ("core", [8]),
        "fixed_s": ("core", [1]),
        "worker_overhead_s": ("core", [1]),
    }


def test_terms_of_a_ring():
    samples = [Sample(2, 5.0, gpu_type="g"), Sample(4, 5.0, gpu_type="h", cpus=3.0)]
    found = named(samples, Setting(batch=8, intra_gbps=80.0))
    assert found["per_sample_s g"] == ("core", [4, 0])
    assert found["per_sample_s h"] == ("core", [0, 2])
    assert found["worker_overhead_s"][1] == [2, 4]
    assert found["cpu_s_per_sample"] == ("cpu", [0, pytest.approx(8 / 3)])
    # A megabyte is 0.008 Gb; each worker sends 2 (w - 1) / w of it.
    assert found["gradient_mb"][1] == pytest.approx([0.008 / 80, 1.5 * 0.008 / 80])
    assert "server_overhead_s" not in found
    assert "sample_kb" not in found


def test_servers_add_their_own_term():
    found = named([Sample(2, 5.0, servers=3), Sample(2, 5.0)], Setting(batch=8))
    assert found["server_overhead_s"] == ("core", [3, 1])  # none counts as one


def test_every_worker_of_a_weak_job_has_its_batch():
    found = named([Sample(4, 5.0, gpu_type="g")], Setting(batch=8, scaling="weak"))
    assert found["per_sample_s g"] == ("core", [8])


def test_what_was_found_is_put_into_a_profile():
    samples = [Sample(1, 5.0, gpu_type="g"), Sample(1, 5.0, gpu_type="h")]
    found = {"per_sample_s g": 0.123456789, "fixed_s": 0.5, "gradient_mb": 0.0, "cpu_s_per_sample": 0.25}
    profile = profile_of(found, samples, Setting(batch=8), "mine")
    assert (profile.name, profile.batch, profile.scaling) == ("mine", 8, "strong")
    assert profile.compute == Compute(0.5, {"g": 0.123457, "h": 1e-12})
    assert profile.sync is None
    assert profile.input == Input(0.25, 0.0, 0.0)
    assert profile_of({}, samples, Setting(), "none").input is None


def test_samples_with_servers_mean_parameter_servers():
    found = {"gradient_mb": 3.0, "server_overhead_s": 0.1}
    ring = profile_of(found, [Sample(2, 5.0)], Setting(), "x").sync
    served = profile_of(found, [Sample(2, 5.0), Sample(2, 5.0, servers=1)], Setting(), "x").sync
    assert (ring.kind, served.kind) == ("ring", "ps")
    assert served == Sync("ps", gradient_mb=3.0, latency_s=0.0, server_overhead_s=0.1)


def test_least_squares_without_negative_unknowns():
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert nonnegative(rows, np.array([2.0, -3.0]), 0.0) == pytest.approx([2, 0])


def test_an_idle_unknown_stays_at_nothing():
    rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert nonnegative(rows, np.array([3.0, 6.0]), 1e-9) == pytest.approx([3, 0])


def test_a_ridge_pulls_by_the_length_of_a_column():
    """One unknown of length 5 in units of its own: 5 x / (1 + ridge^2)."""
    rows, goal = np.array([[3.0], [4.0]]), np.array([6.0, 8.0])
    assert nonnegative(rows, goal, 0.0) == pytest.approx([2])
    assert nonnegative(rows, goal, 1.0) == pytest.approx([1])


@settings(max_examples=30)
@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=3), st.integers(0, 1000))
def test_exact_sums_are_solved_exactly(unknowns, seed):
    rows = np.random.default_rng(seed).uniform(0.5, 2, (8, 3)) + np.eye(8, 3) * 5
    assert nonnegative(rows, rows @ unknowns, 0.0) == pytest.approx(unknowns, rel=1e-6)


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_terms_add_up_to_the_step_of_the_speed_model(servers):
    samples = [Sample(w, 1.0, servers=servers, gpu_type="g", nodes=n) for w, n in ((1, 1), (2, 1), (4, 2))]
    setting = Setting(batch=12, network_gbps=5.0, intra_gbps=50.0)
    found = {"per_sample_s g": 0.01, "fixed_s": 0.02, "worker_overhead_s": 0.003, "gradient_mb": 40.0}
    if servers:
        found["server_overhead_s"] = 0.004
    steps = sum(found[term.name] * term.seconds for term in terms_of(samples, setting))
    speeds = predicted(profile_of(found, samples, setting, "x"), samples, setting)
    assert 12 / speeds == pytest.approx(steps)
