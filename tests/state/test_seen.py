"""What is remembered of a job while it runs: speeds at each size, losses, time on each GPU type."""

from __future__ import annotations

import pytest

from trainyard.model.profile import Loss
from trainyard.state.seen import RECENT, Seen, losses_of, restored

CURVE = Loss(b0=0.5, b1=1.0, b2=0.25, epoch_samples=100.0)


def test_runs_at_one_size_add_up():
    seen = Seen()
    seen.ran_at((2, 0), 10.0, 50.0)
    seen.ran_at((2, 0), 5.0, 30.0)
    seen.ran_at((4, 1), 1.0, 9.0)
    assert seen.ran == {(2, 0): (15.0, 80.0), (4, 1): (1.0, 9.0)}


@pytest.mark.parametrize(("samples", "ran"), [(0.0, {}), (-1.0, {}), (1e-9, {(2, 0): (3.0, 1e-9)})])
def test_a_run_without_samples_tells_no_speed(samples, ran):
    seen = Seen()
    seen.ran_at((2, 0), 3.0, samples)
    assert seen.ran == ran


def test_time_is_split_over_gpu_types_by_workers():
    seen = Seen()
    seen.held([3, 1], 8.0)
    assert seen.type_s == [6.0, 2.0]
    seen.held([0, 2], 5.0)
    assert seen.type_s == [6.0, 7.0]
    servers = Seen()
    servers.held([0, 0], 5.0)
    assert servers.type_s == [0.0, 0.0]


def test_losses_count_only_after_some_work_and_above_zero():
    seen = Seen()
    for done, loss in ((0.0, 2.0), (10.0, 0.0), (10.0, -1.0), (20.0, 1.5), (30.0, 1.0)):
        seen.reported(done, loss)
    samples, losses = losses_of(seen, None, 30.0)
    assert (samples.tolist(), losses.tolist()) == ([20.0, 30.0], [1.5, 1.0])


def test_only_recent_losses_are_looked_at():
    seen = Seen()
    for k in range(1, RECENT + 6):
        seen.reported(float(k), 1.0 / k)
    samples, losses = losses_of(seen, CURVE, 1e9)  # what was told wins over the profile's curve
    assert (len(samples), len(losses)) == (RECENT, RECENT)
    assert (samples[0], samples[-1]) == (6.0, RECENT + 5.0)
    assert losses[0] == 1.0 / 6


@pytest.mark.parametrize("seen", [None, Seen()])
def test_a_job_that_tells_nothing_and_has_no_curve_has_no_losses(seen):
    samples, losses = losses_of(seen, None, 50.0)
    assert (samples.shape, losses.shape) == ((0,), (0,))


@pytest.mark.parametrize(
    ("done", "epochs"), [(0.0, []), (99.0, []), (100.0, [1]), (199.0, [1]), (350.0, [1, 2, 3])]
)
def test_a_job_that_tells_nothing_follows_its_curve_by_whole_epochs(done, epochs):
    samples, losses = losses_of(None, CURVE, done)
    assert samples.tolist() == [100.0 * k for k in epochs]
    assert losses.tolist() == pytest.approx([1.0 / (0.5 * k + 1.0) + 0.25 for k in epochs])


def test_a_long_curve_is_cut_at_its_recent_end():
    samples, _ = losses_of(None, CURVE, 100.0 * (RECENT + 3))
    assert (samples[0], samples[-1], len(samples)) == (400.0, 100.0 * (RECENT + 3), RECENT)


def full():
    seen = Seen()
    seen.ran_at((1, 0), 1.0, 1.0)
    seen.reported(1.0, 1.0)
    seen.held([1, 1], 2.0)
    return seen


def test_a_copy_learns_on_its_own():
    seen = full()
    twin = seen.copy()
    twin.ran_at((1, 0), 1.0, 1.0)
    twin.reported(2.0, 1.0)
    twin.held([1, 1], 2.0)
    assert (seen.ran, seen.losses, seen.type_s) == ({(1, 0): (1.0, 1.0)}, [(1.0, 1.0)], [1.0, 1.0])
    assert (twin.ran, len(twin.losses), twin.type_s) == ({(1, 0): (2.0, 2.0)}, 2, [2.0, 2.0])


def test_what_was_seen_goes_through_a_file():
    seen = restored(full().record())
    assert seen is not None
    assert (
        seen.record()
        == full().record()
        == {"ran": [[1, 0, 1.0, 1.0]], "losses": [[1.0, 1.0]], "type_s": [1.0, 1.0]}
    )
    assert restored({}) is None
    assert Seen().record() == {}


def test_how_many_losses_are_recent():
    assert RECENT == 200


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, None),
        ({"ran": [[2, 1, 3.0, 6.0]]}, Seen({(2, 1): (3.0, 6.0)})),
        ({"losses": [[5.0, 0.5]]}, Seen(losses=[(5.0, 0.5)])),
        ({"type_s": [1.0, 2.0]}, Seen(type_s=[1.0, 2.0])),
    ],
)
def test_each_part_of_what_was_seen_is_restored(told, expected):
    assert restored(told) == expected
    assert expected is None or expected.record() == told


def test_only_the_losses_that_are_looked_at_are_kept():
    seen = Seen()
    for step in range(1, 5 * RECENT):
        seen.reported(float(step), 1.0 / step)
        assert len(seen.losses) <= 2 * RECENT
    samples, _ = losses_of(seen, None, 0.0)
    assert list(samples) == [float(step) for step in range(4 * RECENT, 5 * RECENT)]
