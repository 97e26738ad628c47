"""The online workload on mixed GPU types: what is drawn, and one small run of each policy."""

from __future__ import annotations

import numpy as np
import pytest

from trainyard.model.speed import SpeedModel
from trainyard.model.zoo import FOR_OLDER_GPUS
from trainyard.reproduce.market.online import POLICIES, Online, Outcome, tables, tasks
from trainyard.reproduce.market.workload import MOST_GPUS, SIZES, Workload, mixed_cluster, mixed_jobs


def test_the_same_seed_draws_the_same_jobs():
    assert mixed_jobs(Workload(1.0, 3)) == mixed_jobs(Workload(1.0, 3))
    assert mixed_jobs(Workload(1.0, 3)) != mixed_jobs(Workload(1.0, 4))


def test_load_changes_only_when_jobs_come():
    light, heavy = mixed_jobs(Workload(0.5, 1)), mixed_jobs(Workload(2.0, 1))
    assert [job.samples for job in light] == [job.samples for job in heavy]
    assert [job.arrival_s for job in light] == pytest.approx([4 * job.arrival_s for job in heavy])


def test_jobs_are_as_described():
    jobs, model = mixed_jobs(Workload(1.0, 0, jobs=2000)), SpeedModel(mixed_cluster())
    sizes = np.array([job.gpus for job in jobs])
    assert [float((sizes == size).mean()) for size in SIZES] == pytest.approx(
        [0.7, 0.1, 0.15, 0.05], abs=1e-9
    )
    one = np.array([[1, 0, 0]])
    minutes = np.array(
        [job.samples / model.bulk(job.profile, model.proportional(one))[0] / 60 for job in jobs]
    )
    assert minutes.min() >= 0.2 * 10**1.5 * (1 - 1e-9)
    assert minutes.max() <= 0.2 * 10**4 * (1 + 1e-9)
    assert float((minutes > 0.2 * 1000).mean()) == pytest.approx(0.2, abs=0.03)
    assert minutes[sizes == 8].mean() > 3 * minutes[sizes == 1].mean()  # who has more work asks for more
    assert {(job.least_gpus, job.most_gpus) for job in jobs} == {(1, MOST_GPUS)}
    assert {job.model for job in jobs} == set(FOR_OLDER_GPUS)


def test_the_cluster_has_as_many_gpus_of_each_type():
    cluster = mixed_cluster()
    assert cluster.gpus == 96
    assert len({node.gpu_type for node in cluster.nodes}) == 3


@pytest.mark.parametrize("policy", POLICIES.values())
def test_a_small_run_of_every_policy(policy):
    outcome = Online(policy, Workload(1.0, 0, jobs=8)).carry_out()
    assert 0 < outcome.jct_h <= outcome.p95_h < 100
    assert 0 < outcome.jain <= 1
    assert 0 < outcome.gpu_use <= 1


def test_the_table_has_a_row_for_every_policy_and_load():
    runs = tasks(quick=True)
    assert len(runs) == len(set(runs))
    found = {run: Outcome(1.0 + len(run.policy), 2.0, 0.5, 3.0, 0.4, 1.0, 5.0) for run in runs}
    (table,) = tables(True, found)
    assert len(table.rows) == len(POLICIES) == len(runs)
    assert min(row[3] for row in table.rows) == 1.0
