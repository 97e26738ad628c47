"""Layer timing against the goldens of the SMD specification and a link played through in small events."""

import numpy as np
import pytest

from trainyard.model.profile import Layer, Sync
from trainyard.model.speed.overlap import (
    layer_shares,
    overlap_coefficients,
    overlapped_s,
    priority_exact,
    priority_printed,
    sequential,
    wait_free,
)

FIGURE_4 = {"forward": (1, 1, 1, 1), "backward": (1, 1, 1, 2), "one_way": (1, 1.2, 1.5, 3)}
LATE = {"forward": (1, 1, 1), "backward": (1, 1, 1), "one_way": (1, 2, 2)}


def arrays(case):
    return tuple(np.array(case[key], dtype=float) for key in ("forward", "backward", "one_way"))


def played_through(forward, backward, push):
    """Preemptive priority on one link, event by event: an independent statement of `priority_exact`."""
    n = len(push)
    computed = [sum(backward[j:]) for j in range(n)]
    left, done, now = list(push), [0.0] * n, 0.0
    while any(amount > 0 for amount in left):
        waiting = [j for j in range(n) if left[j] > 0 and computed[j] <= now]
        later = [t for t in computed if t > now]
        if not waiting:
            now = min(later)
            continue
        first = min(waiting)
        end = min([now + left[first], *later])
        # The remainder is taken to be exactly nothing when the layer ends, or rounding would keep it alive.
        left[first] = 0.0 if end == now + left[first] else left[first] - (end - now)
        now = done[first] = end
    start = max(done[0], computed[0])
    for j in range(1, n):
        start = max(start + forward[j - 1], done[j])
    return start + forward[-1]


def test_wait_free_golden():
    forward, backward, one_way = arrays(FIGURE_4)
    assert wait_free(forward, backward, one_way, one_way) == pytest.approx(15.7)
    assert sequential(forward, backward, one_way, one_way) == pytest.approx(5 + 2 * 6.7 + 4)


def test_priority_golden_printed_and_exact():
    forward, backward, one_way = arrays(LATE)
    assert priority_printed(forward, backward, one_way) == 8
    assert priority_exact(forward, backward, one_way) == 7
    assert priority_printed(forward, backward, one_way, slice_s=0.5) == pytest.approx(8.5)


def test_priority_exact_is_the_link_played_through():
    rng = np.random.default_rng(5)
    for _ in range(300):
        forward, backward, push = rng.uniform(0.1, 3, (3, rng.integers(1, 7)))
        exact = priority_exact(forward, backward, push)
        assert exact == pytest.approx(played_through(forward, backward, push), rel=1e-12)
        assert exact <= priority_printed(forward, backward, push) + 1e-12


def test_coefficients_of_figure_4():
    forward, backward, one_way = arrays(FIGURE_4)
    eta = overlap_coefficients("wait-free", forward, backward, one_way)
    assert eta == pytest.approx((1.0, 2 / 5, (2 * 3 + 1.5 + 1.2 + 1) / (2 * 6.7)))
    assert overlap_coefficients("sequential", forward, backward, one_way) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("kind", ["wait-free", "priority-exact"])
def test_coefficients_add_up_to_the_step(kind):
    rng = np.random.default_rng(7)
    for _ in range(100):
        forward, backward, one_way = rng.uniform(0.1, 3, (3, rng.integers(1, 8)))
        eta = overlap_coefficients(kind, forward, backward, one_way)
        shown = eta[0] * forward.sum() + eta[1] * backward.sum() + eta[2] * 2 * one_way.sum()
        if kind == "wait-free":
            step = wait_free(forward, backward, one_way, one_way)
        else:
            step = priority_exact(forward, backward, one_way)
        assert shown == pytest.approx(step, rel=1e-12)
        assert all(0 <= part <= 1 + 1e-12 for part in eta)


@pytest.mark.parametrize("overlap", ["wait-free", "priority", "priority-exact"])
@pytest.mark.parametrize("push", [0.5, 1.5, 2.5, 4.0])
def test_no_layers_is_the_limit_of_many(overlap, push):
    sync = Sync(overlap=overlap)
    compute, pushed, nothing = np.array([3.0]), np.array([push]), np.zeros(1)
    many = layer_shares([Layer(1.0, 2.0, 1.0)] * 1000)
    limit = overlapped_s(sync, None, 0.0, compute, pushed, nothing)
    exact = Sync(overlap="priority-exact") if overlap == "priority" else sync
    assert overlapped_s(exact, many, 0.0, compute, pushed, nothing) == pytest.approx(limit, rel=0.01)


def test_rows_scale_with_the_shape():
    shares = layer_shares([Layer(1, 1, 10), Layer(1, 2, 30)])
    compute, push = np.array([5.0, 10.0]), np.array([4.0, 8.0])
    both = overlapped_s(Sync(overlap="wait-free"), shares, 0.0, compute, push, push)
    assert both[1] == pytest.approx(2 * both[0])


def test_layers_that_say_nothing_are_equal():
    assert layer_shares([Layer(1, 1, 0), Layer(1, 1, 0)]).gradient.tolist() == [0.5, 0.5]
    timeless = layer_shares([Layer(0, 0, 1), Layer(0, 0, 3)])
    assert timeless.forward == pytest.approx([1 / 6, 1 / 6])
    assert timeless.backward == pytest.approx([1 / 3, 1 / 3])
