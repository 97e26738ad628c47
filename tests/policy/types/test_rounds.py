"""Rounds: when the next one begins, who stays in between, and who is asked."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from conftest import checked
from policy_cases import nodes_of, snapshot_of, two_types
from trainyard.errors import InputError
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.policy.types.options import options_of, room_for
from trainyard.policy.types.rounds import Rounds


class Noted(Rounds):
    """Gives every job that does not stay one GPU of the first type, and notes who stayed."""

    def __init__(self, round_s=100.0):
        super().__init__(round_s)
        self.stayed = None

    def choose(self, snapshot, ranked, held, capacity, stay):
        self.stayed = stay.tolist()
        return np.where(stay[:, None], held, [[1, 0]])


def jobs(count=2):
    return [Job(f"j{i}", 0.0, 1, duration_s=1e4) for i in range(count)]


def assigned(now_s, held, capacity=(2, 2), count=2, round_s=100.0):
    """Workers by type, and who stayed, if the last decision was 40 s ago; None if nobody was asked."""
    stage = Noted(round_s)
    snapshot = snapshot_of(two_types(), jobs(count), now_s=now_s)
    snapshot.decided_s = now_s - 40.0
    mix = stage.assign(snapshot, np.arange(count), np.array(held), np.array(capacity))
    return mix.tolist(), stage.stayed


def test_at_the_start_of_a_round_nobody_stays():
    assert assigned(200.0, [[0, 1], [0, 0]]) == ([[1, 0], [1, 0]], [False, False])


def test_in_between_who_runs_stays():
    assert assigned(150.0, [[0, 1], [0, 0]]) == ([[0, 1], [1, 0]], [True, False])


def test_nobody_is_asked_in_between_if_all_run_or_nothing_is_idle():
    assert assigned(150.0, [[0, 1], [1, 0]]) == ([[0, 1], [1, 0]], None)
    assert assigned(150.0, [[2, 2], [0, 0]]) == ([[2, 2], [0, 0]], None)
    assert assigned(150.0, [[2, 1], [0, 0]])[1] == [True, False]


@pytest.mark.parametrize(
    ("decided_s", "now_s", "round_s", "begins"),
    [
        (-inf, 0.0, 100.0, True),
        (-inf, 150.0, 100.0, True),  # nobody decided before
        (250.0, 300.0, 100.0, True),
        (250.0, 301.2, 100.0, True),  # late, but nobody did the work of this round yet
        (250.0, 399.0, 100.0, True),
        (300.0, 300.5, 100.0, False),  # it was done a moment ago
        (201.2, 299.9, 100.0, False),
        (299.9, 300.0 - 1e-9, 100.0, True),  # rounding
        (2.0, 3.3, 1.1, True),  # 3.3 is not three times 1.1
    ],
)
def test_a_round_begins_once_however_late(decided_s, now_s, round_s, begins):
    snapshot = snapshot_of(two_types(), jobs(), now_s=now_s)
    snapshot.decided_s = decided_s
    assert Noted(round_s)._begins(snapshot) is begins


def test_who_has_not_had_its_turn_stays_for_another_round():
    """A restart takes 30 s, so a turn lasts 300 s; the job runs since 0."""
    held = {"j0": {"k": 1}}
    for now_s, stays in ((200.0, True), (299.0, True), (300.0, False)):
        snapshot = snapshot_of(two_types(), jobs(), held, now_s, restart_s=30.0)
        snapshot.decided_s = now_s - 150.0
        stage = Noted()
        stage.assign(snapshot, np.arange(2), np.array([[1, 0], [0, 0]]), np.array([2, 2]))
        assert stage.stayed == [stays, False]


@pytest.mark.parametrize("policy", ["gavel(round_s=30)", "gavel(round_s=5)", "hadar(round_s=5)"])
def test_rounds_shorter_than_a_restart_end_too(policy):
    """Before, none of both was done after 20,000 s, with 665 restarts."""
    work = [Job(f"j{i}", 0.0, 1, duration_s=1000.0) for i in range(2)]
    result = checked(nodes_of(1), work, policy, restart_s=30.0)
    assert result.summary()["completed"] == 2
    assert result.summary()["restarts"] <= 2 * 1000 / 300
    assert result.summary()["makespan_s"] <= 2000 + 30 * result.summary()["restarts"]


@pytest.mark.parametrize("round_s", [0.0, -5.0, float("nan")])
def test_a_round_takes_time(round_s):
    with pytest.raises(InputError, match="give seconds above 0"):
        Noted(round_s)


# -- what a job could use of each type --------------------------------------------------------------------


def room(job, own_type=-1, capacity=(8, 8), cluster=None):
    return room_for(job, own_type, NodeTable(cluster or two_types(8, 8)), np.array(capacity)).tolist()


def asking(**more):
    return Job("a", 0.0, 2, duration_s=10.0, **more)


def test_a_plain_job_could_use_all():
    assert room(asking()) == [8, 8]
    assert room(asking(), capacity=(3, 5)) == [3, 5]


def test_a_job_of_one_type_could_use_only_that():
    assert room(asking(), own_type=1) == [0, 8]
    assert room(asking(), own_type=0, capacity=(3, 5)) == [3, 0]


def test_cpus_and_memory_limit_gpus_node_by_node():
    """A node has 24 CPUs and 480 GB for its eight GPUs."""
    assert room(asking(cpus=12.0)) == [4, 4]  # 6 for each of two workers
    assert room(asking(cpus=14.0)) == [3, 3]
    assert room(asking(memory_gb=320.0)) == [3, 3]
    assert room(asking(cpus=12.0, memory_gb=320.0), capacity=(2, 8)) == [2, 3]
    assert room(asking(cpus=0.0)) == [8, 8]
    assert room(asking(cpus=16.0), cluster=nodes_of(8, 8), capacity=(16,)) == [6]
    assert room(asking(cpus=26.0), cluster=nodes_of(8, 8), capacity=(16,)) == [2]


def gangs(*made, capacity=(2, 2), cluster=None):
    snapshot = snapshot_of(cluster or two_types(), made)
    return options_of(snapshot, np.arange(len(made)), np.array(capacity))


def test_a_gang_as_large_as_a_type_fits_it_and_one_larger_does_not():
    found = gangs(Job("a", 0.0, 2, duration_s=10.0), Job("b", 0.0, 1, duration_s=10.0), capacity=(2, 1))
    assert found.use[0].tolist() == [[2, 0], [0, 0]]
    assert found.use[1].tolist() == [[1, 0], [0, 1]]
    assert found.speed.tolist() == [[0.5, 0.0], [0.25, 1.0]]


def test_a_gang_is_mixed_only_if_no_type_could_ever_hold_it():
    """Three are more than either type ever has. Two are not, so with one GPU of each type up they wait."""
    found = gangs(Job("a", 0.0, 3, duration_s=10.0), capacity=(2, 1))
    assert found.use[0].tolist() == [[2, 1], [0, 0]]
    assert found.speed[0].tolist() == [1.5, 0.0]
    assert gangs(Job("a", 0.0, 2, duration_s=10.0), capacity=(1, 1)).use.any() == np.False_
    assert gangs(Job("a", 0.0, 4, duration_s=10.0), capacity=(2, 1)).use.any() == np.False_
