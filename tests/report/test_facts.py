"""What stands above the plots: the outcome in a sentence, the cluster, the workload."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conftest import checked
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.report.facts import facts, headline, short_ratio
from trainyard.report.measures import with_speedup


def jobs_of(*rows):
    return [
        Job(f"j{i}", float(at), gpus, float(run_s), tenant=tenant)
        for i, (at, gpus, run_s, tenant) in enumerate(rows)
    ]


def said_of(result, **options):
    return dict(facts(result, options))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.0, "0%"), (1.004, "0%"), (1.25, "25%"), (1.494, "49%"), (1.5, "1.50 times"), (12.0, "12.0 times")],
)
def test_a_small_gain_is_in_percent(ratio, said):
    assert short_ratio(ratio) == said


def test_a_run_alone_is_compared_with_nothing():
    assert headline([{"policy": "srtf", "avg_jct_s": 30.0}]) == "srtf completes a job in 30.0 s on average."


def test_the_first_of_equals_is_the_shortest():
    summaries = with_speedup([{"policy": "a", "avg_jct_s": 5.0}, {"policy": "b", "avg_jct_s": 5.0}])
    assert headline(summaries) == "a completes a job in 5.00 s on average, the shortest of all."


def test_a_policy_under_which_no_job_completes_does_not_win():
    summaries = [{"policy": "a", "avg_jct_s": float("nan")}, {"policy": "b", "avg_jct_s": 60.0}]
    assert headline(with_speedup(summaries)).startswith("b completes a job in 60.0 s")


def test_facts_of_a_small_run():
    nodes = (Node("a", "V100", 4, 12, 250), Node("b", "P100", 2, 6, 125), Node("c", "V100", 4, 12, 250))
    cluster = Cluster("lab", nodes)
    result = checked(cluster, jobs_of((0, 1, 1800, "x"), (3600, 2, 900, "y"), (7200, 1, 3600, "")))
    said = said_of(result, seed=3)
    assert list(said) == ["cluster", "workload", "offered load", "seed"]
    assert said["cluster"] == "lab: 10 GPUs on 3 nodes (2 x 4 V100, 1 x 2 P100)"
    assert said["workload"] == "3 jobs of 2 tenants, arriving over 2.00 h"
    assert said["offered load"] == "10% of capacity (2.00 GPU-hours)"  # 2 of 10 GPUs x 2 h
    assert said["seed"] == "3"


def test_one_tenant_is_not_worth_a_word():
    result = checked(uniform_cluster(1), jobs_of((0, 1, 10, "x"), (60, 1, 10, "x"), (90, 1, 10, "")))
    assert said_of(result)["workload"] == "3 jobs, arriving over 90.0 s"


def test_jobs_that_come_together_have_no_load():
    result = checked(uniform_cluster(1), jobs_of((5, 8, 36_000, ""), (5, 8, 36_000, "")))
    said = said_of(result)
    assert said["offered load"] == "all at once (160 GPU-hours)"
    assert said["workload"] == "2 jobs, arriving over 0 s"


@pytest.mark.parametrize(("hours", "said"), [(10.0, "10.0"), (10.5, "10"), (11.6, "12")])
def test_more_than_ten_gpu_hours_are_whole(hours, said):
    result = checked(uniform_cluster(1), jobs_of((0, 1, hours * 3600, "")))
    assert said_of(result)["offered load"] == f"all at once ({said} GPU-hours)"


def test_a_run_without_jobs_says_so():
    nothing = SimpleNamespace(
        job_id=[], tenant=[], arrival_s=np.empty(0), gpus=np.empty(0), ideal_s=np.empty(0)
    )
    said = said_of(SimpleNamespace(cluster=uniform_cluster(1), outcomes=nothing))
    assert said["workload"] == "no jobs"
    assert said["offered load"] == "all at once (0 GPU-hours)"
