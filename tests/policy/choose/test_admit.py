"""Tenants, priorities, sizes and jobs that must not stop, under every stage of the registry."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stage_cases import BY_TYPE, ORDERS, PLACES, SIZES, TUNES, names_in
from tenant_cases import obeyed, shared_clusters, shared_jobs
from trainyard.policy.registry import ENTRIES

STAGED = ["+".join(stages) for stages in product(ORDERS, SIZES, PLACES, TUNES)]
TYPED = ["+".join(stages) for stages in product(["fifo", "srtf", "las"], BY_TYPE, PLACES, TUNES)]
# Where any GPUs will do, so that a free GPU is a place.
ANYWHERE = [
    "+".join(stages)
    for stages in product(ORDERS, [*SIZES, *BY_TYPE], ["pack", "spread"], ["proportional", "tune"])
]
SOME = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def test_every_stage_is_run():
    assert names_in([*STAGED, *TYPED]) == set(ENTRIES)


@pytest.mark.interpreted  # it looks into a yard's decisions
@SOME
@given(st.data())
def test_limits_sizes_and_jobs_that_must_not_stop(data):
    cluster = data.draw(shared_clusters())
    jobs = data.draw(shared_jobs(cluster))
    policy = data.draw(st.sampled_from(data.draw(st.sampled_from([STAGED, STAGED, TYPED]))))
    rules = {
        "restart_s": data.draw(st.sampled_from([0.0, 5.0])),
        "round_s": data.draw(st.sampled_from([None, 13.0])),
    }
    result = obeyed(cluster, jobs, policy, False, **rules)
    assert result.summary()["completed"] == len(jobs)


@pytest.mark.interpreted
@SOME
@given(st.data())
def test_guarantees_and_priorities_come_first(data):
    cluster = data.draw(shared_clusters(one_type=True))
    jobs = data.draw(shared_jobs(cluster, plain=True))
    policy = data.draw(st.sampled_from(ANYWHERE))
    result = obeyed(cluster, jobs, policy, True, restart_s=data.draw(st.sampled_from([0.0, 5.0])))
    assert result.summary()["completed"] == len(jobs)
