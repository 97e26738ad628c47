from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from grower_cases import a_grower, profiles
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.size.steepest import losses_of, steepest


def by_definition(growers, losses, ahead):
    """Every step of every job is looked at anew, again and again."""
    sizes = [(0, 0)] * len(growers)

    def fits(i, size):
        given = [*sizes[:i], size, *sizes[i + 1 :]]
        used = sum(
            w * np.array(g.worker) + p * np.array(g.server) for (w, p), g in zip(given, growers, strict=True)
        )
        return (used <= 1 + 1e-9).all()

    for i, grower in enumerate(growers):
        if fits(i, grower.least):
            sizes[i] = grower.least
    while True:
        steps = []
        for i, (grower, loss) in enumerate(zip(growers, losses, strict=True)):
            w, p = sizes[i]
            if not w:
                continue
            for a in range(ahead + 1):
                for b in range(ahead + 1):
                    if not 0 < a + b <= ahead or w + a >= loss.shape[0] or p + b >= loss.shape[1]:
                        continue
                    share = max(a * np.array(grower.worker) + b * np.array(grower.server))
                    saved = (loss[w, p] - loss[w + a, p + b]) / share if share else 0.0
                    if saved > 0 and fits(i, (w + a, p + b)):
                        steps.append((saved, -i, -a, -b))
        if not steps:
            return sizes
        _, i, a, b = max(steps)
        sizes[-i] = (sizes[-i][0] - a, sizes[-i][1] - b)


@settings(max_examples=200, deadline=None)
@given(st.lists(a_grower(), max_size=4), st.integers(1, 4), st.data())
def test_it_does_what_it_says(growers, ahead, data):
    work = [data.draw(st.floats(0.1, 200.0)) for _ in growers]
    losses = [losses_of(g.speeds, one, 2.0) for g, one in zip(growers, work, strict=True)]
    assert list(map(tuple, steepest(growers, losses, ahead))) == by_definition(growers, losses, ahead)


def test_losses_by_hand():
    speeds = np.array([[0.0, 2.0, 4.0]])
    # Work for half a round at the peak: over after a whole one at half of it, never without speed.
    np.testing.assert_allclose(losses_of(speeds, 20.0, 10.0), [[1.0, 0.5, 0.0]], atol=1e-6)
    # Work for three rounds: nobody is done, and half of the speed loses half of the round.
    np.testing.assert_allclose(losses_of(speeds, 120.0, 10.0), [[1.0, 0.5, 0.0]], atol=1e-6)
    # A tenth of a round at the peak, a fifth of one at half of it.
    np.testing.assert_allclose(losses_of(speeds, 4.0, 10.0), [[1.0, 0.1, 0.0]], atol=1e-6)
    np.testing.assert_allclose(losses_of(speeds, 4.0, None), [[1.0, 0.5, 0.0]], atol=1e-6)


@pytest.mark.parametrize("kind", profiles())
@pytest.mark.parametrize("policy", ["steepest", "srtf+steepest"])
def test_all_kinds_of_jobs_share_a_cluster(kind, policy):
    profile = profiles()[kind]
    jobs = [
        Job(str(i), 40.0 * i, 2, duration_s=900.0, profile=profile, min_gpus=1, max_gpus=8) for i in range(12)
    ]
    result = checked(uniform_cluster(2), jobs, policy)
    assert result.summary()["completed"] == 12
    fixed = checked(uniform_cluster(2), jobs, "fixed")
    assert result.summary()["makespan_s"] < fixed.summary()["makespan_s"]
