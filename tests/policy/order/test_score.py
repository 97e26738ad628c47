"""Orders of one number per job: what a score sees, and that jobs go by it."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest

from conftest import checked, finishes
from trainyard.errors import PlanError
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.score import ScoreOrder

NODE = uniform_cluster(nodes=1, gpus=4, gpu_type="V100")
CROWD = [Job(f"j{i}", 7.0 * i, 1 + i % 4, duration_s=30.0 + 37 * (i % 5)) for i in range(25)]


class Scored(ScoreOrder):
    """An order by any function, which remembers what it saw."""

    def __init__(self, number):
        self.number = number
        self.seen = []

    def score(self, job):
        self.seen.append(job)
        return self.number(job)


class Patient(Scored):
    preemptive: ClassVar[bool] = False
    fill = "strict"


def run(order, jobs, rest="fifo"):
    return checked(NODE, jobs, dataclasses.replace(parse_policy(rest), name="scored", order=order))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (lambda job: job.remaining_s, "srtf"),
        (lambda job: job.remaining_s * job.gpus, "srsf"),
    ],
)
@pytest.mark.parametrize("rest", ["fifo", "spread", "drf"])
def test_the_same_numbers_give_the_same_run(number, name, rest):
    ours = checked(NODE, CROWD, name if rest == "fifo" else f"{name}+{rest}")
    assert finishes(run(Scored(number), CROWD, rest)) == finishes(ours)


def test_without_preemption_running_jobs_stay():
    shortest = run(Patient(lambda job: job.remaining_s), CROWD)
    assert finishes(shortest) == finishes(checked(NODE, CROWD, "sjf"))
    assert shortest.summary()["preemptions"] == 0
    assert not any(job.running for job in run_and_see(Patient, CROWD))


def run_and_see(kind, jobs):
    order = kind(lambda job: job.arrival_s)
    run(order, jobs)
    return order.seen


def test_ties_go_by_submission():
    jobs = [Job(name, 0.0, 4, duration_s=10.0) for name in "cab"]
    assert finishes(run(Scored(lambda job: 0), jobs)) == {"c": 10.0, "a": 20.0, "b": 30.0}
    assert finishes(run(Scored(lambda job: math.inf), jobs)) == {"c": 10.0, "a": 20.0, "b": 30.0}


def test_a_score_sees_the_job_as_it_is_now():
    jobs = [
        Job("first", 5.0, 2, duration_s=100.0, tenant="a", weight=3.0, deadline_s=500.0, gpu_type="V100"),
        Job("second", 25.0, 4, duration_s=10.0, model="m", min_gpus=1, max_gpus=8),
    ]
    seen = [job for job in run_and_see(Scored, jobs) if job.now_s == 25.0]
    first, second = (next(job for job in seen if job.job_id == name) for name in ("first", "second"))
    assert first._asdict() == {
        "job_id": "first", "tenant": "a", "model": "", "gpus": 2, "min_gpus": 2, "max_gpus": 2,
        "gpu_type": "V100", "weight": 3.0, "deadline_s": 500.0, "arrival_s": 5.0, "now_s": 25.0,
        "remaining_s": 80.0, "executed_s": 20.0, "attained_gpu_s": 40.0, "running": True,
    }  # fmt: skip
    assert (second.running, second.executed_s, second.remaining_s) == (False, 0.0, 10.0)
    assert (second.model, second.gpu_type, second.deadline_s) == ("m", "", None)
    assert (second.min_gpus, second.gpus, second.max_gpus) == (1, 4, 8)


@pytest.mark.parametrize("score", [math.nan, None, "1"])
def test_what_is_no_number_is_refused(score):
    with pytest.raises(PlanError, match=r"order Scored scores job 'j0' .*; a score must be a number"):
        run(Scored(lambda job: score), [dataclasses.replace(job, arrival_s=0.0) for job in CROWD])


def test_numbers_of_numpy_are_numbers():
    order = Scored(lambda job: np.float32(job.gpus))
    assert finishes(run(order, CROWD)) == finishes(run(Scored(lambda job: job.gpus), CROWD))
