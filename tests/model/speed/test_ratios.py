"""The sum of ratios is the speed model in another form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Input, Layer, Profile, Sync, Tables
from trainyard.model.speed import Ratios, SpeedModel

SERVED = Profile(
    batch=128,
    compute=Compute(0.02, {"GPU": 0.002}),
    sync=Sync("ps", gradient_mb=90, worker_overhead_s=0.002, server_overhead_s=0.001),
    worker=Demand(2.0, 16.0),
    server=Demand(1.0, 8.0),
)
SPEED = SpeedModel(uniform_cluster(4, 8))


def job(profile):
    return Job("a", 0.0, 1, samples=1e6, profile=profile)


@given(
    st.sampled_from(["strong", "weak"]),
    st.sampled_from(["sync", "async"]),
    st.tuples(*[st.floats(0.1, 1.0)] * 3),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_the_sum_is_the_time_of_a_sample(scaling, mode, eta, workers, servers):
    sync = replace(SERVED.sync, mode=mode, async_share=0.6, eta=eta)
    profile = replace(SERVED, scaling=scaling, sync=sync)
    shapes = SPEED.proportional(np.array([[workers]]), np.array([servers]))
    ratios = SPEED.ratios(job(profile), 0, float(shapes.bandwidth_gbps[0]))
    w, p = workers, servers
    each_s = np.dot(ratios, (1, w, p, w / p, p / w, 1 / w, 1 / p))
    assert 1 / each_s == pytest.approx(SPEED.bulk(profile, shapes)[0])


@pytest.mark.parametrize(
    "profile",
    [
        None,
        replace(SERVED, server=None),
        replace(SERVED, sync=replace(SERVED.sync, overlap="wait-free")),
        replace(SERVED, layers=(Layer(0.1, 0.2, 90.0),)),
        replace(SERVED, input=Input(0.003)),
        replace(SERVED, tables=Tables(workers_servers=((1, 1, 10.0), (2, 2, 19.0)))),
    ],
)
def test_other_speeds_have_no_such_form(profile):
    assert SPEED.ratios(job(SERVED), 0, 10.0) is not None
    assert SPEED.ratios(job(profile), 0, 10.0) is None


def test_golden():
    wire_s = 2 * 90 * 8e-3 / 10
    step = (0.02, 0.002, 0.001, wire_s, 0.0, 128 * 0.002, 0.0)
    assert SPEED.ratios(job(SERVED), 0, 10.0) == pytest.approx(Ratios(*(part / 128 for part in step)))
