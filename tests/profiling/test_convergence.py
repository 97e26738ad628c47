"""Loss curves: from the losses of some epochs to the epoch at which training has converged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from trainyard.errors import InputError
from trainyard.profiling.convergence import Curve, epochs_to_converge, fit_curve

TRUE = Curve(0.1, 1.0, 0.2)
EPOCHS = np.arange(1.0, 41.0)
CONVERGED = 66


def noisy(seed, wrong=0):
    """Return forty losses with 1 % noise, and some of them far off."""
    rng = np.random.default_rng(seed)
    losses = TRUE.loss(EPOCHS) * (1 + 0.01 * rng.normal(size=len(EPOCHS)))
    losses[rng.choice(len(losses), wrong, replace=False)] *= rng.choice([0.3, 0.7, 1.5, 3.0], wrong)
    return losses


def converged(curve):
    return epochs_to_converge(curve, window=10, drop=0.02, cap=1000)


def test_first_epoch_that_drops_less():
    assert converged(TRUE) == CONVERGED
    assert TRUE.loss(55.0) - TRUE.loss(65.0) > 0.02 > TRUE.loss(56.0) - TRUE.loss(66.0)


def test_at_most_the_cap_and_not_before_the_window():
    assert epochs_to_converge(TRUE, 10, 0.02, cap=50) == 50
    assert epochs_to_converge(TRUE, 10, 10.0, cap=50) == 10
    assert epochs_to_converge(Curve(0.0, 1.0, 0.2), 10, 0.02, cap=50) == 10
    assert epochs_to_converge(Curve(5e-324, 1.0, 0.0), 10, 0.02, cap=50) == 10


@pytest.mark.parametrize("count", [3, 4, 8, 40])
@pytest.mark.parametrize("true", [TRUE, Curve(1.0, 0.3, 0.0), Curve(20.0, 2.0, 0.5), Curve(1e-4, 2e-3, 50.0)])
def test_without_noise_the_curve_is_found(true, count):
    found = fit_curve(EPOCHS[:count], true.loss(EPOCHS[:count]))
    assert found.loss(EPOCHS) == pytest.approx(true.loss(EPOCHS), rel=1e-3)


@pytest.mark.parametrize("wrong", [0, 2, 4])
def test_convergence_within_five_percent(wrong):
    told = np.array([converged(fit_curve(EPOCHS, noisy(seed, wrong))) for seed in range(200)])
    assert (abs(told / CONVERGED - 1) <= 0.05).all()


def test_the_order_of_points_does_not_matter():
    losses, order = noisy(0), np.random.default_rng(0).permutation(len(EPOCHS))
    assert fit_curve(EPOCHS[order], losses[order]) == fit_curve(EPOCHS, losses)


def test_losses_of_optimus():
    known = case("dl2/losses")
    epochs, true = np.array(known["epochs"], dtype=np.float64), Curve(*known["true"])
    found = fit_curve(epochs, np.array(known["losses"]))
    assert found.loss(epochs) == pytest.approx(true.loss(epochs), rel=0.01)
    for value, grid in zip((found.b0, found.b1, found.b2), known["grid_b2_nnls"], strict=True):
        assert value == pytest.approx(grid, rel=0.01)
    assert epochs_to_converge(found, 10, 0.05, 100) == epochs_to_converge(true, 10, 0.05, 100)


@pytest.mark.parametrize("losses", [(1, 1, 1), (1, 2, 3), (1,) * 20])
def test_losses_that_do_not_fall_have_converged(losses):
    curve = fit_curve(np.arange(1.0, len(losses) + 1), np.array(losses, dtype=np.float64))
    assert curve.b0 == pytest.approx(0.0, abs=1e-9)
    assert converged(curve) == 10


def test_two_losses_are_too_few():
    with pytest.raises(InputError, match="2 losses are too few for a curve; give at least 3"):
        fit_curve(np.array([1.0, 2.0]), np.array([3.0, 2.0]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1e9)), min_size=3, max_size=30))
def test_whatever_the_losses_the_curve_is_one(points):
    epochs, losses = np.array(points).T
    curve = fit_curve(epochs, losses)
    assert min(curve.b0, curve.b1, curve.b2) >= 0
    told = curve.loss(np.arange(400.0))
    assert np.isfinite(told).all()
    assert (np.diff(told) <= 0).all()
    assert 10 <= epochs_to_converge(curve, 10, 0.01, 100) <= 100
