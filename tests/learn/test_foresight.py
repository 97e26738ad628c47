"""What is still to come in an episode, counted by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from trainyard.learn.episode import Scenario
from trainyard.learn.foresight import HORIZONS, OF_FUTURE, Foresight, coming, traced
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job

SLOT_S = 100.0
CLUSTER = uniform_cluster(1, 8)


def scenario(*arrivals, run_s=50.0):
    jobs = [Job(f"j{i}", float(at), 1, run_s * (i + 1)) for i, at in enumerate(arrivals)]
    return Scenario(CLUSTER, jobs, SLOT_S)


def counted(numbers):
    jobs, work = np.expm1(numbers).reshape(2, -1)
    return jobs.round(6).tolist(), work.round(6).tolist()


def test_jobs_and_work_add_up():
    arrivals, sums = traced(scenario(0, 150, 300))
    assert arrivals.tolist() == [0, 1.5, 3]
    assert sums[0].tolist() == [0, 1, 2, 3]
    assert sums[1].tolist() == pytest.approx([0, 0.5, 1.5, 3])  # slots of 50, 100 and 150 s


def test_what_comes_within_each_horizon():
    """Horizons of 1, 2, 3, 4, 6, 8, 12, 16 and 32 slots."""
    trace = traced(scenario(0, 100, 250, 3_000))
    jobs, work = counted(coming(trace, 0.0))
    assert HORIZONS.tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 32]
    assert jobs == [1, 1, 2, 2, 2, 2, 2, 2, 3]  # the one that is there now is not to come
    assert work == [1, 1, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 4.5]


def test_time_goes_on():
    trace = traced(scenario(0, 100, 250, 3_000))
    assert counted(coming(trace, 1.0))[0] == [0, 1, 1, 1, 1, 1, 1, 1, 2]
    assert counted(coming(trace, 0.999))[0][0] == 1
    assert not coming(trace, 30.0).any()
    assert coming(trace, 0.0).size == OF_FUTURE


def test_the_first_episodes_begin_late():
    source = Foresight(lambda number: scenario(*range(0, 800, 100)), rows=4)
    first = [source(row).jobs for row in range(5)]
    assert [len(jobs) for jobs in first] == [8, 6, 4, 2, 8]
    assert [jobs[0].job_id for jobs in first] == ["j0", "j2", "j4", "j6", "j0"]
    assert all(jobs[0].arrival_s == 0 for jobs in first)


def test_a_late_beginning_keeps_the_place_in_the_slot():
    source = Foresight(lambda number: scenario(0, 120, 230, 340), rows=2)
    assert [job.arrival_s for job in source(1).jobs] == [30, 140]


def test_rows_of_a_group_play_the_same():
    asked = []

    def draw(number):
        asked.append(number)
        return scenario(0, 100, 200, 300)

    source = Foresight(draw, rows=4, group=2)
    for number in range(8):
        source(number)
    assert asked == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(source(0).jobs) == len(source(1).jobs) == 4
    assert len(source(2).jobs) == len(source(3).jobs) == 2


def test_moments_tell_slots_of_traces_apart():
    source = Foresight(lambda number: scenario(0, 100), rows=4, group=2)
    episodes = [None, *(SimpleNamespace(number=n, slots=s) for n, s in ((1, 3), (0, 3), (2, 3), (0, 4)))]
    found = source.moments(SimpleNamespace(episodes=episodes)).tolist()
    assert found[0] == -1
    assert found[1] == found[2]
    assert len(set(found[1:])) == 3


def test_looking_ahead_fills_the_rows_that_play():
    source = Foresight(lambda number: scenario(0, 100, 200), rows=2)
    source(0)
    playing = SimpleNamespace(number=0, slot_s=SLOT_S, simulator=SimpleNamespace(now_s=0.0))
    source.look(SimpleNamespace(episodes=[playing, None]), [0, 1])
    assert counted(source.seen[0].astype(float))[0][:3] == pytest.approx([1, 2, 2], abs=1e-5)
    assert not source.seen[1].any()
