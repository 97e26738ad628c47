"""Results by tenant: by hand, and their sums are those of the run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.sim.tenants import by_tenant


def test_tenants_by_hand():
    jobs = [
        Job("a", 0.0, 2, 10.0, tenant="vision"),
        Job("b", 1.0, 2, 20.0, tenant="speech", status="failed"),
        Job("c", 2.0, 1, 5.0, tenant="vision"),
        Job("d", 3.0, 1, 1.0),
        Job("e", 40.0, 2, 9.0, tenant="late"),
    ]
    tenants = checked(uniform_cluster(1, 2), jobs, until_s=42.0).summary()["tenants"]
    assert list(tenants) == ["", "late", "speech", "vision"]
    assert tenants["vision"] == {"jobs": 2, "avg_jct_s": (10 + 33) / 2, "avg_queue_s": 14.0, "gpu_s": 25.0}
    assert tenants["speech"] == {"jobs": 1, "avg_jct_s": 29.0, "avg_queue_s": 9.0, "gpu_s": 40.0}
    assert tenants[""] == {"jobs": 1, "avg_jct_s": 28.0, "avg_queue_s": 27.0, "gpu_s": 1.0}
    late = tenants["late"]
    assert math.isnan(late.pop("avg_jct_s"))  # it has not ended
    assert late == {"jobs": 1, "avg_queue_s": 0.0, "gpu_s": 4.0}


def test_nobody_has_no_tenants():
    nothing = np.zeros(0)
    assert by_tenant([], nothing, nothing, nothing) == {}


times = st.one_of(st.just(math.nan), st.floats(0.0, 1e6))


@given(st.lists(st.tuples(st.sampled_from(["", "x", "y", "z"]), times, times, st.floats(0.0, 1e6))))
def test_groups_are_those_of_a_plain_loop(rows):
    columns = [np.array([row[i] for row in rows]) for i in (1, 2, 3)]
    found = by_tenant([row[0] for row in rows], *columns)
    assert list(found) == sorted({row[0] for row in rows})
    for name, told in found.items():
        own = [row for row in rows if row[0] == name]
        assert told["jobs"] == len(own)
        assert told["gpu_s"] == pytest.approx(sum(row[3] for row in own))
        for i, key in ((1, "avg_jct_s"), (2, "avg_queue_s")):
            known = [row[i] for row in own if not math.isnan(row[i])]
            mean = sum(known) / len(known) if known else math.nan
            assert told[key] == pytest.approx(mean, nan_ok=True)
