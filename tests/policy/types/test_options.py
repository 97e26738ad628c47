"""Clusters of several GPU types: moving to faster ones, and the time that jobs spent on each."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import checked, finishes
from trainyard.core.events import DecisionDue, JobFinished, JobStopped, JobSubmitted
from trainyard.core.instructions import Stop
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.options import options_of
from trainyard.state.beliefs import Told
from trainyard.state.capacity import held_by_type, seconds_by_type

TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}


def two_types(v100=2, k80=2):
    nodes = (Node("v", "V100", v100, 3.0 * v100, 60.0 * v100), Node("k", "K80", k80, 3.0 * k80, 60.0 * k80))
    return Cluster("two", nodes, TYPES)


def jobs_in_turn():
    return [Job("first", 0.0, 2, duration_s=100.0), Job("second", 0.0, 2, duration_s=200.0)]


def test_a_job_moves_to_a_faster_type_when_that_pays():
    """The second starts on K80s and has done 25 of its 200 seconds when the V100s are free."""
    assert finishes(checked(two_types(), jobs_in_turn(), "srtf", restart_s=10.0)) == pytest.approx(
        {"first": 100.0, "second": 100.0 + 10.0 + 175.0}
    )


def test_it_stays_when_the_restart_costs_more():
    assert finishes(checked(two_types(), jobs_in_turn(), "srtf", restart_s=600.0))["second"] == 800.0


def test_who_asks_for_a_type_stays_on_it():
    jobs = [Job("first", 0.0, 2, duration_s=100.0), Job("second", 0.0, 2, duration_s=200.0, gpu_type="K80")]
    assert finishes(checked(two_types(), jobs, "srtf", restart_s=10.0))["second"] == 800.0


def test_sizes_go_by_the_type_that_a_job_runs_on():
    yard = Yard(two_types(), parse_policy("srtf").decide)
    for job in jobs_in_turn():
        yard.handle(JobSubmitted(0.0, job))
    before = Told(yard.snapshot(0.0))
    assert [before.gpu_type(row) for row in range(2)] == [0, 0]
    yard.handle(DecisionDue(0.0))
    after = Told(yard.snapshot(0.0))
    assert {job.job_id: after.gpu_type(row) for row, job in enumerate(yard.table.jobs)} == {
        "first": 0,
        "second": 1,
    }


def test_seconds_on_each_type_are_kept_and_a_fork_keeps_its_own():
    yard = Yard(two_types(), parse_policy("srtf").decide, Rules(restart_s=10.0))
    for job in jobs_in_turn():
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    yard.handle(JobFinished(100.0, "first"))
    for instruction in yard.handle(DecisionDue(100.0)):
        if isinstance(instruction, Stop):
            yard.handle(JobStopped(100.0, instruction.job_id))
    snapshot = yard.snapshot(150.0)
    assert seconds_by_type(snapshot, held_by_type(snapshot)).tolist() == [[50.0, 100.0]]
    twin = snapshot.fork()
    yard.handle(JobFinished(200.0, "second"))
    assert twin.table.of["second"].see().type_s == [0.0, 100.0]


class TestGangs:
    def gangs(self, *jobs, cluster=None):
        yard = Yard(cluster or two_types(), parse_policy("srtf").decide)
        for job in jobs:
            yard.handle(JobSubmitted(0.0, job))
        capacity = np.array([2, 2])
        return options_of(yard.snapshot(0.0), np.arange(len(jobs)), capacity)

    def test_one_option_per_type_that_holds_the_gang(self):
        small = Job("a", 0.0, 2, samples=1e6, profile=zoo_profile("resnet50"))
        bound = Job("b", 0.0, 1, duration_s=10.0, gpu_type="K80")
        gangs = self.gangs(small, bound)
        assert gangs.use[0].tolist() == [[2, 0], [0, 2]]
        assert gangs.speed[0, 0] > gangs.speed[0, 1] > 0
        assert gangs.use[1].tolist() == [[0, 0], [0, 1]]
        assert gangs.speed[1].tolist() == [0.0, 0.25]

    def test_a_larger_gang_takes_the_fastest_first(self):
        gangs = self.gangs(Job("a", 0.0, 3, duration_s=10.0))
        assert gangs.use[0].tolist() == [[2, 1], [0, 0]]
        assert gangs.speed[0].tolist() == [2.25, 0.0]

    def test_cpus_that_only_one_type_has(self):
        nodes = (Node("v", "V100", 2, 2.0, 60.0), Node("k", "K80", 2, 16.0, 60.0))
        job = Job("a", 0.0, 2, duration_s=10.0, cpus=8.0)
        gangs = self.gangs(job, cluster=Cluster("two", nodes, TYPES))
        assert gangs.use[0].tolist() == [[0, 0], [0, 2]]
