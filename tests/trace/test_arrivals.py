"""Bursty arrivals: batches, the two processes that move the rate, and the hours of the week."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from trainyard.trace.arrivals import BLOCK_H, WEEK_H, Batches, BurstyArrivals, Modulation

ALONE = Batches(np.array([1.0]), 10.5, 1.0, 11, 2.0)
STILL = Modulation((0.0, 0.0), (1.0, 1.0))


def rng(seed=0):
    return np.random.default_rng(seed)


class Numbers:
    """Stands in for a generator: gives these numbers, whatever is asked for."""

    def __init__(self, *draws):
        self._draws = iter(draws)

    def random(self, n):
        return np.array(next(self._draws), float)


@pytest.mark.parametrize(("u", "size"), [(0.0, 1), (0.499, 1), (0.5, 2), (0.749, 2), (0.75, 4), (0.999, 4)])
def test_sizes_follow_the_table_and_then_the_tail(u, size):
    batches = Batches(np.array([0.5, 0.25]), 4.0, 1.0, 8.0, 1.0)
    assert batches.draw(1, Numbers([u], [0.0])).tolist() == [size]


@pytest.mark.parametrize(("u", "size"), [(0.0, 4), (0.5, 5), (2 / 3, 6), (1.0, 8)])
def test_the_tail_is_a_truncated_pareto(u, size):
    """With alpha 1 from 4 to 8: 4 / (1 - u / 2), rounded."""
    batches = Batches(np.array([0.5]), 4.0, 1.0, 8.0, 1.0)
    assert batches.draw(1, Numbers([0.9], [u])).tolist() == [size]


def test_the_mean_size_is_that_of_table_and_tail():
    assert ALONE.mean() == 1
    assert Batches(np.array([0.25, 0.75]), 10.5, 1.0, 11, 2.0).mean() == 1.75
    tailed = Batches(np.array([0.5]), 4.0, 1.0, 8.0, 1.0)
    # Of the tail, 4 / (1 - u / 2) rounds to 4, 5, 6, 7, 8 from these parts of u on.
    cuts = [0.0, *(2 - 8 / half for half in (4.5, 5.5, 6.5, 7.5)), 1.0]
    expected = sum(size * (b - a) for size, a, b in zip(range(4, 9), cuts[:-1], cuts[1:], strict=True))
    assert tailed.mean() == pytest.approx(0.5 + 0.5 * expected, rel=1e-3)


def test_a_rate_that_does_not_wander_has_factor_one():
    first, second = islice(STILL.factors(rng()), 2)
    assert first.shape == second.shape == (BLOCK_H,)
    assert (first == 1).all()
    assert (second == 1).all()


def test_factors_have_mean_one_their_deviation_and_their_memory():
    path = np.log(np.concatenate(list(islice(Modulation((0.5,), (3.0,)).factors(rng(1)), 100))))
    assert path.mean() == pytest.approx(-0.125, abs=0.02)
    assert path.std() == pytest.approx(0.5, rel=0.03)
    for hours in (1, 3):
        kept = np.corrcoef(path[:-hours], path[hours:])[0, 1]
        assert kept == pytest.approx(np.exp(-hours / 3), abs=0.03)


def test_the_two_processes_add_up():
    path = np.log(np.concatenate(list(islice(Modulation((0.3, 0.4), (2.0, 5.0)).factors(rng(2)), 60))))
    assert path.std() == pytest.approx(0.5, rel=0.05)


def test_jobs_come_only_in_the_hours_that_have_a_rate():
    hourly = np.zeros(WEEK_H)
    hourly[[3, 100]] = 50.0
    at = BurstyArrivals(hourly, ALONE, STILL).draw(2_000, rng())
    assert set((at // 3600 % WEEK_H).astype(int)) == {3, 100}
    assert (
        at.max() > BLOCK_H * 3600
    )  # 100 a week: the second block of four weeks goes on where the first ends
    weeks = np.bincount((at // (3600 * WEEK_H)).astype(int))
    assert (weeks[:-1] > 50).all()


def test_arrivals_are_whole_seconds_in_order():
    at = BurstyArrivals(np.full(WEEK_H, 10.0), ALONE, STILL).draw(500, rng(4))
    assert len(at) == 500
    assert (np.diff(at) >= 0).all()
    assert (at == np.floor(at)).all()
    assert at.min() >= 0
    assert BurstyArrivals(np.full(WEEK_H, 10.0), ALONE, STILL).draw(0, rng()).size == 0


def test_a_batch_comes_within_seconds():
    fours = Batches(np.array([0.0, 0.0, 0.0, 1.0]), 10.5, 1.0, 11, 1.0)
    at = BurstyArrivals(np.full(WEEK_H, 0.4), fours, STILL).draw(400, rng(5))
    gaps = np.diff(at)
    together = gaps.reshape(-1)[gaps <= 5]
    assert len(together) >= 300  # three gaps in each of a hundred batches, which come every ten hours
    assert np.diff(at[::4]).mean() == pytest.approx(36_000, rel=0.3)
    assert at[3] - at[0] <= 15


def test_batches_do_not_change_the_rate_of_jobs():
    hourly = np.full(WEEK_H, 12.0)
    twos = Batches(np.array([0.0, 1.0]), 10.5, 1.0, 11, 1.0)
    for batches in (ALONE, twos):
        at = BurstyArrivals(hourly, batches, STILL).draw(8_000, rng(6))
        assert 8_000 / (at[-1] / 3600) == pytest.approx(12, rel=0.06)
