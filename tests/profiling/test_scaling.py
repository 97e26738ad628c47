"""Speeds learnt from speeds: workers and servers that were never tried."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from trainyard.errors import InputError
from trainyard.profiling.scaling import fit_scaling

BATCH = 64
WORKERS, SERVERS = (grid.ravel() for grid in np.meshgrid(np.arange(1, 25), np.arange(1, 13)))
SERVED = (np.array([1, 2, 4, 3, 8, 2]), np.array([1, 1, 2, 4, 3, 6]))
RING = (np.array([1, 2, 8]), np.zeros(3, dtype=np.int64))


def ring(w, p, samples):
    return samples / (2e-3 * samples / w + 0.004 * (w - 1) + 0.03 * (w - 1) / w + 0.02)


def sync(w, p, samples):
    return samples / (3e-3 * samples / w + 0.05 + 0.1 * w / p + 0.01 * w + 0.002 * p)


def asynchronous(w, p, samples):
    return samples / (3e-3 * samples / w + 0.1 * w / p + 0.01 * w + 0.002 * p)


def samples_of(scaling, workers):
    return BATCH * (workers if scaling == "weak" else np.ones(len(workers)))


def fit(kind, speeds, workers, servers=None, scaling="strong"):
    none = np.zeros(len(workers), dtype=np.int64)
    given = none if servers is None else np.array(servers)
    return fit_scaling(kind, BATCH, scaling, np.array(workers), given, np.array(speeds, dtype=np.float64))


def told(scaled, *workers):
    return scaled.speed(np.array(workers), np.zeros(len(workers), dtype=np.int64)).tolist()


@pytest.mark.parametrize("scaling", ["strong", "weak"])
@pytest.mark.parametrize(
    ("kind", "true", "seen"), [("ring", ring, RING), ("sync", sync, SERVED), ("async", asynchronous, SERVED)]
)
def test_without_noise_unseen_speeds_are_found(kind, true, seen, scaling):
    found = fit(kind, true(*seen, samples_of(scaling, seen[0])), *seen, scaling)
    expected = true(WORKERS, SERVERS, samples_of(scaling, WORKERS))
    assert found.speed(WORKERS, SERVERS) == pytest.approx(expected, rel=1e-9)


def test_asynchronous_batches_are_those_of_optimus():
    workers, servers = SERVED
    batches = workers / (0.3 + 0.1 * workers / servers + 0.01 * workers + 0.002 * servers)
    found = fit("async", batches * BATCH, workers, servers, "weak")
    assert found.fitted(workers, servers) == pytest.approx(batches * BATCH, rel=1e-9)


@pytest.mark.parametrize("scaling", ["strong", "weak"])
@pytest.mark.parametrize("kind", ["ring", "sync", "async"])
def test_one_point_is_linear_scaling(kind, scaling):
    found = fit(kind, [100.0], [4], scaling=scaling)
    assert told(found, 1, 2, 4, 64) == pytest.approx([25.0, 50.0, 100.0, 1600.0])


def test_two_points_are_a_part_that_is_not_shared():
    assert told(fit("ring", [100.0, 180.0], [1, 2]), 4, 8) == pytest.approx([300.0, 450.0], rel=1e-3)


def test_two_points_tell_what_servers_help():
    found = fit("sync", [10.0, 15.0], [4, 4], [1, 2])
    more = found.speed(np.array([4, 4]), np.array([4, 8]))
    assert more == pytest.approx([20.0, 24.0], rel=1e-3)


def test_what_was_measured_overrides_the_fit():
    workers = np.array([1, 2, 4, 8, 8])
    found = fit("ring", [100.0, 250.0, 210.0, 300.0, 500.0], workers)
    assert told(found, 1, 2, 4, 8) == [100.0, 250.0, 210.0, 400.0]
    assert found.fitted(workers, workers)[1] != 250.0


def test_a_point_counts_once_however_often_it_repeats():
    once = fit("sync", sync(*SERVED, BATCH) * np.linspace(0.9, 1.1, 6), *SERVED)
    often = np.array([0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5])
    again = fit(
        "sync",
        (sync(*SERVED, BATCH) * np.linspace(0.9, 1.1, 6))[often],
        *(seen[often] for seen in SERVED),
    )
    assert again.fitted(WORKERS, SERVERS) == pytest.approx(once.fitted(WORKERS, SERVERS), rel=1e-9)


def test_servers_of_a_ring_do_not_matter_and_none_counts_as_one():
    assert told(fit("ring", [10.0, 30.0], [2, 2], [0, 5]), 2) == [20.0]
    assert told(fit("sync", [10.0, 30.0], [2, 2], [0, 1]), 2) == [20.0]


def test_workers_that_only_hurt():
    one = told(fit("ring", [100.0, 30.0], [2, 4]), 1)[0]
    assert 100 < one < 2000


@pytest.mark.parametrize("speeds", [[], [0.0], [1.0, -1.0], [float("nan")], [float("inf")]])
def test_speeds_that_are_none(speeds):
    with pytest.raises(InputError, match="speeds must be numbers above 0, and at least one"):
        fit("ring", speeds, np.ones(len(speeds), dtype=np.int64))


def test_the_table_of_dl2():
    models = case("dl2/speeds")
    assert len(models) == 8
    for model in models.values():
        points = np.array([point for point in model["points"] if point[2] > 0])
        (servers, workers), speeds = points.T[:2].astype(np.int64), points[:, 2]
        found = fit_scaling("sync", model["batch_size"], "strong", workers, servers, speeds)
        fitted = found.fitted(workers, servers)
        mape = np.abs(fitted / speeds - 1).mean()
        r2 = 1 - ((fitted - speeds) ** 2).sum() / ((speeds - speeds.mean()) ** 2).sum()
        assert [mape, r2] == pytest.approx(model["fit_mape_r2"], rel=1e-6)
        assert (found.speed(workers, servers) == speeds).all()


allocations = st.dictionaries(
    st.tuples(st.integers(1, 64), st.integers(1, 32)), st.floats(1e-6, 1e9), min_size=1, max_size=12
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["ring", "sync", "async"]),
    st.sampled_from(["strong", "weak"]),
    st.integers(1, 4096),
    allocations,
)
def test_speeds_are_finite_positive_and_as_measured(kind, scaling, batch, seen):
    if kind == "ring":
        seen = {(workers, 0): speed for (workers, _), speed in seen.items()}
    workers, servers = np.array(list(seen)).T
    speeds = np.array(list(seen.values()))
    found = fit_scaling(kind, batch, scaling, workers, servers, speeds)
    everywhere = found.speed(WORKERS, SERVERS)
    assert np.isfinite(everywhere).all()
    assert (everywhere > 0).all()
    assert (found.speed(workers, servers) == speeds).all()
