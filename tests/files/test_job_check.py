"""Jobs against a cluster: numbers at the edge of what a double holds."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.files.job_check import JobCheck
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Demand, Profile, Sync

CHECK = JobCheck(uniform_cluster(2, 4))


@pytest.mark.parametrize("cpus", [0.0, 5e-324, 1e-300, 3.0])
def test_workers_that_need_next_to_nothing_fit(cpus):
    profile = Profile("p", sync=Sync(kind="ps"), worker=Demand(cpus, cpus), server=Demand(0.0, 0.0))
    CHECK(Job("a", 0.0, 8, 10.0, profile=profile))


def test_a_number_of_gpus_may_be_asked_about():
    job = Job("a", 0.0, 12, 10.0, min_gpus=2)
    CHECK(job)
    with pytest.raises(InputError, match="job 'a' needs 12 GPUs; the cluster has 8"):
        CHECK(job, gpus=12)
