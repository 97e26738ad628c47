from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from grower_cases import a_grower, profiles
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Demand, Profile, Sync, Tables
from trainyard.policy.size.growth import Grower
from trainyard.policy.size.lookahead import look_ahead


def by_definition(growers, ahead):
    """The same rule, written down as it is said, with exact sums instead of what is left."""
    sizes = [(0, 0)] * len(growers)

    def used(sizes):
        return sum(
            w * np.array(g.worker) + p * np.array(g.server) for (w, p), g in zip(sizes, growers, strict=True)
        )

    def fits(i, size):
        return (used([*sizes[:i], size, *sizes[i + 1 :]]) <= 1 + 1e-9).all()

    def share(i):
        w, p = sizes[i]
        return max(w * np.array(growers[i].worker) + p * np.array(growers[i].server)) / growers[i].weight

    hopeful = []
    for i, grower in enumerate(growers):
        if fits(i, grower.least):
            sizes[i] = grower.least
            hopeful.append(i)
    while hopeful:
        i = min(hopeful, key=lambda i: (share(i), i))
        speeds, (w, p) = growers[i].speeds, sizes[i]
        steps = [
            ((speeds[w + a, p + b] - speeds[w, p]) * (1 / (a + b)), -a, -b)
            for a in range(ahead + 1)
            for b in range(ahead + 1)
            if 0 < a + b <= ahead and w + a < speeds.shape[0] and p + b < speeds.shape[1]
            if speeds[w + a, p + b] > speeds[w, p] and fits(i, (w + a, p + b))
        ]
        if steps:
            _, a, b = max(steps)
            sizes[i] = (w - a, p - b)
        else:
            hopeful.remove(i)
    return sizes


@settings(max_examples=300, deadline=None)
@given(st.lists(a_grower(), max_size=5), st.integers(1, 5))
def test_it_does_what_it_says(growers, ahead):
    assert list(map(tuple, look_ahead(growers, ahead))) == by_definition(growers, ahead)


def test_it_looks_beyond_a_step_that_brings_nothing():
    speeds = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 10.0, 9.0, 30.0]])
    job = Grower(speeds, (1, 1), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0))
    assert look_ahead([job], 1).tolist() == [[1, 1]]
    assert look_ahead([job], 2).tolist() == [[1, 3]]


@pytest.mark.parametrize("kind", profiles())
def test_all_kinds_of_jobs_share_a_cluster(kind):
    profile = profiles()[kind]
    jobs = [
        Job(str(i), 40.0 * i, 2, duration_s=900.0, profile=profile, min_gpus=1, max_gpus=8) for i in range(12)
    ]
    result = checked(uniform_cluster(2), jobs, "lookahead")
    assert result.summary()["completed"] == 12
    fixed = checked(uniform_cluster(2), jobs, "fixed")
    assert result.summary()["makespan_s"] < fixed.summary()["makespan_s"]


def test_what_is_scarce_counts_not_only_gpus():
    """A worker with its server takes all CPUs of a quarter of the node, whose GPUs never run out."""
    rows = tuple((float(w), float(p), float(w * p)) for w in range(1, 9) for p in range(1, 9))
    profile = Profile(
        batch=8,
        sync=Sync("ps"),
        tables=Tables(workers_servers=rows),
        worker=Demand(1.0, 0.0),
        server=Demand(1.0, 0.0),
        restart_s=0.0,
    )
    cluster = Cluster("small", (Node("n", "GPU", 8, 8.0, 8.0),))
    jobs = [Job(str(i), 0.0, 1, samples=1e3, profile=profile, min_gpus=1, max_gpus=8) for i in range(2)]
    for policy, sizes in {"drf": [(2, 2), (2, 2)], "lookahead": [(3, 3), (1, 1)]}.items():
        story = checked(cluster, jobs, policy).story
        first = [change.allocation for change in story if change.allocation is not None][:2]
        assert [(held.gpus, held.servers) for held in first] == sizes
