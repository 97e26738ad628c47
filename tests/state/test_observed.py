"""What is remembered of jobs while they run: speeds at each size, losses, time on each GPU type."""

from __future__ import annotations

import pytest

from trainyard.model.profile import Loss
from trainyard.state.observed import RECENT, Observed

CURVE = Loss(b0=0.5, b1=1.0, b2=0.25, epoch_samples=100.0)


def test_runs_at_one_size_add_up():
    observed = Observed()
    observed.ran("a", (2, 0), 10.0, 50.0)
    observed.ran("a", (2, 0), 5.0, 30.0)
    observed.ran("a", (4, 1), 1.0, 9.0)
    observed.ran("b", (2, 0), 7.0, 7.0)
    assert observed.seen("a", None) == {(2, 0): (15.0, 80.0), (4, 1): (1.0, 9.0)}
    assert observed.seen("nobody", None) == {}


@pytest.mark.parametrize(("samples", "seen"), [(0.0, {}), (-1.0, {}), (1e-9, {(2, 0): (3.0, 1e-9)})])
def test_a_run_without_samples_tells_no_speed(samples, seen):
    observed = Observed()
    observed.ran("a", (2, 0), 3.0, samples)
    assert observed.seen("a", None) == seen


def test_the_present_run_counts_and_is_not_kept():
    observed = Observed()
    observed.ran("a", (2, 0), 10.0, 50.0)
    assert observed.seen("a", ((2, 0), 1.0, 6.0)) == {(2, 0): (11.0, 56.0)}
    assert observed.seen("a", ((3, 0), 1.0, 6.0)) == {(2, 0): (10.0, 50.0), (3, 0): (1.0, 6.0)}
    assert observed.seen("a", None) == {(2, 0): (10.0, 50.0)}
    assert observed.seen("new", ((3, 0), 1.0, 6.0)) == {(3, 0): (1.0, 6.0)}
    assert observed.seen("new", None) == {}


def test_time_is_split_over_gpu_types_by_workers():
    observed = Observed()
    observed.held("a", [3, 1], 8.0)
    assert observed.type_s == {"a": [6.0, 2.0]}
    observed.held("a", [0, 2], 5.0)
    assert observed.type_s == {"a": [6.0, 7.0]}
    observed.held("one", [0, 1], 3.0)
    assert observed.type_s["one"] == [0.0, 3.0]
    observed.held("servers", [0, 0], 5.0)
    assert observed.type_s["servers"] == [0.0, 0.0]


def test_losses_count_only_after_some_work_and_above_zero():
    observed = Observed()
    for done, loss in ((0.0, 2.0), (10.0, 0.0), (10.0, -1.0), (20.0, 1.5), (30.0, 1.0)):
        observed.reported("a", done, loss)
    samples, losses = observed.losses("a", None, 30.0)
    assert (samples.tolist(), losses.tolist()) == ([20.0, 30.0], [1.5, 1.0])


def test_only_recent_losses_are_looked_at():
    observed = Observed()
    for k in range(1, RECENT + 6):
        observed.reported("a", float(k), 1.0 / k)
    samples, losses = observed.losses("a", CURVE, 1e9)  # what was told wins over the profile's curve
    assert (len(samples), len(losses)) == (RECENT, RECENT)
    assert (samples[0], samples[-1]) == (6.0, RECENT + 5.0)
    assert losses[0] == 1.0 / 6


def test_a_job_that_tells_nothing_and_has_no_curve_has_no_losses():
    samples, losses = Observed().losses("a", None, 50.0)
    assert (samples.shape, losses.shape) == ((0,), (0,))


@pytest.mark.parametrize(
    ("done", "epochs"), [(0.0, []), (99.0, []), (100.0, [1]), (199.0, [1]), (350.0, [1, 2, 3])]
)
def test_a_job_that_tells_nothing_follows_its_curve_by_whole_epochs(done, epochs):
    samples, losses = Observed().losses("a", CURVE, done)
    assert samples.tolist() == [100.0 * k for k in epochs]
    assert losses.tolist() == pytest.approx([1.0 / (0.5 * k + 1.0) + 0.25 for k in epochs])


def test_a_long_curve_is_cut_at_its_recent_end():
    samples, _ = Observed().losses("a", CURVE, 100.0 * (RECENT + 3))
    assert (samples[0], samples[-1], len(samples)) == (400.0, 100.0 * (RECENT + 3), RECENT)


def full():
    observed = Observed()
    for job_id in ("a", "b"):
        observed.ran(job_id, (1, 0), 1.0, 1.0)
        observed.reported(job_id, 1.0, 1.0)
        observed.held(job_id, [1, 1], 2.0)
    return observed


def known(observed, job_id):
    return [job_id in book for book in (observed._ran, observed._losses, observed.type_s)]


def test_nothing_is_kept_of_a_job_that_is_over():
    observed = full()
    observed.forget("a")
    observed.forget("never there")
    assert known(observed, "a") == [False] * 3
    assert known(observed, "b") == [True] * 3


def test_a_copy_learns_on_its_own():
    observed = full()
    twin = observed.copy()
    assert known(twin, "a") == [True] * 3
    twin.ran("a", (1, 0), 1.0, 1.0)
    twin.reported("a", 2.0, 1.0)
    twin.held("a", [1, 1], 2.0)
    twin.forget("b")
    assert known(observed, "b") == [True] * 3
    assert observed.seen("a", None) == {(1, 0): (1.0, 1.0)}
    assert observed.losses("a", None, 1.0)[0].tolist() == [1.0]
    assert observed.type_s["a"] == [1.0, 1.0]
    assert twin.type_s["a"] == [2.0, 2.0]
