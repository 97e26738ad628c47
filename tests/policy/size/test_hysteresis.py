"""Whether resizing pays: who rather stays as it is, by hand, and what holds for any numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_cases import nodes_of, snapshot_of
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.hysteresis import kept, settle
from trainyard.policy.stages import Shapes
from trainyard.state.beliefs import Told

NO_TRIALS: frozenset[int] = frozenset()


def staying(*rows):
    """Which of the jobs (holds, wants, cost in seconds) stay; parts of one resource."""
    holds, wants, cost_s = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    moves = (holds != wants) & (holds > 0) & (wants > 0)
    return kept(moves, holds[:, None], wants[:, None], cost_s).tolist()


STARTS = (0.0, 0.1, 0.0)  # a job that starts: then those that move are looked at one by one


def test_growing_that_does_not_pay_is_left_out():
    assert staying((0.2, 0.4, 5.0), STARTS) == [True, False]
    assert staying((0.2, 0.4, 0.0), STARTS) == [True, False]
    assert staying((0.2, 0.4, -5.0), STARTS) == [False, False]


def test_a_job_that_would_lose_by_shrinking_stays_if_there_is_room():
    assert staying((0.4, 0.2, 5.0), STARTS) == [True, False]
    assert staying((0.4, 0.2, 0.0), STARTS) == [False, False]
    assert staying((0.4, 0.2, -1.0), STARTS) == [False, False]


def test_there_is_room_only_for_what_others_do_not_want():
    assert staying((0.4, 0.2, 5.0), (0.0, 0.6, 0.0)) == [True, False]
    assert staying((0.4, 0.2, 5.0), (0.0, 0.7, 0.0)) == [False, False]


def test_what_those_that_stay_small_leave_is_room_too():
    """The second grows from 0.2 to 0.6 for nothing; as it stays, the first may keep its 0.4."""
    assert staying((0.4, 0.2, 5.0), (0.2, 0.6, 1.0), (0.0, 0.2, 0.0)) == [True, True, False]
    assert staying((0.4, 0.2, 5.0), (0.2, 0.6, -1.0), (0.0, 0.2, 0.0)) == [False, False, False]


def test_who_loses_most_for_what_it_takes_stays_first():
    """Room for 0.2 more: the first would lose 6 s for 0.2, the second 5 s for 0.1."""
    rows = (0.4, 0.2, 6.0), (0.3, 0.2, 5.0), (0.0, 0.4, 0.0)
    assert staying(*rows) == [False, True, False]
    rows = (0.4, 0.2, 11.0), (0.3, 0.2, 5.0), (0.0, 0.4, 0.0)
    assert staying(*rows) == [True, False, False]


def test_if_nobody_starts_and_all_together_would_lose_nobody_moves():
    assert staying((0.4, 0.2, 5.0), (0.6, 0.8, -4.0)) == [True, True]
    assert staying((0.4, 0.2, 5.0), (0.6, 0.8, -6.0)) == [False, False]
    assert staying((0.4, 0.2, 5.0), (0.6, 0.8, -5.0)) == [True, True]


def test_a_job_that_neither_holds_nor_wants_does_not_start():
    assert staying((0.4, 0.2, 5.0), (0.6, 0.8, -5.0), (0.0, 0.0, 0.0)) == [True, True, False]


def test_the_scarcest_resource_decides():
    """Staying takes more GPUs and fewer CPUs: that is more, and needs room of GPUs."""
    holds = np.array([[0.4, 0.1], [0.0, 0.0]])
    wants = np.array([[0.2, 0.3], [0.7, 0.0]])
    cost = np.array([5.0, 0.0])
    moves = np.array([True, False])
    assert kept(moves, holds, wants, cost).tolist() == [False, False]
    wants[1, 0] = 0.6
    assert kept(moves, holds, wants, cost).tolist() == [True, False]


PARTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4])


@given(st.lists(st.tuples(PARTS, PARTS, st.integers(-9, 9)), min_size=1, max_size=6))
def test_only_those_that_move_stay_and_all_fit(rows):
    holds, wants, cost_s = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    if holds.sum() > 1 or wants.sum() > 1:
        return
    moves = (holds != wants) & (holds > 0) & (wants > 0)
    stay = kept(moves, holds[:, None], wants[:, None], cost_s)
    assert not (stay & ~moves).any()
    assert np.where(stay, holds, wants).sum() <= 1 + 1e-6
    starts = ((holds == 0) & (wants > 0)).any()
    # Together those that move never lose, unless they make way for a job that starts.
    assert starts or cost_s[moves & ~stay].sum() <= 0


# -- whole snapshots --------------------------------------------------------------------------------------


def elastic(name, gpus=2, duration_s=100.0):
    return Job(name, 0.0, gpus, duration_s=duration_s, min_gpus=1, max_gpus=8)


def settled(gpus, held, jobs=None, trials=NO_TRIALS, now_s=0.0, **rules):
    """Sizes of the jobs a, b, ... after settling."""
    made = jobs or [elastic(name) for name in "ab"[: len(gpus)]]
    seats = {name: {"n0": count} for name, count in held.items()}
    snapshot = snapshot_of(nodes_of(8), made, seats, now_s, **rules)
    ranked = np.array([snapshot.table.of[job.job_id].row for job in made])
    return settle(Told(snapshot), ranked, Shapes(np.array(gpus)), trials).gpus.tolist()


@pytest.mark.parametrize(("restart_s", "size"), [(49.0, 4), (50.0, 2), (51.0, 2)])
def test_a_job_grows_if_that_saves_more_than_the_restart(restart_s, size):
    """200 GPU-seconds: 100 s with two GPUs, 50 s with four."""
    assert settled([4], {"a": 2}, restart_s=restart_s) == [size]


@pytest.mark.parametrize(("restart_s", "size"), [(24.0, 4), (25.0, 2)])
def test_what_is_done_does_not_gain_any_more(restart_s, size):
    assert settled([4], {"a": 2}, now_s=50.0, restart_s=restart_s) == [size]


def test_waiting_and_unchanged_jobs_are_left_alone():
    assert settled([3, 2], {"b": 2}, restart_s=1e6) == [3, 2]
    assert settled([0, 2], {"a": 2, "b": 2}, restart_s=1e6) == [0, 2]


def test_a_trial_goes_on_whatever_it_costs():
    assert settled([4, 2], {"a": 2, "b": 2}, trials=frozenset({0}), restart_s=1e6) == [4, 2]
    assert settled([4, 2], {"a": 2, "b": 2}, trials=frozenset({1}), restart_s=1e6) == [2, 2]


def test_shrinking_for_a_job_that_starts():
    """Eight GPUs: b starts with two, so a may keep six of its seven at most; it goes to what it was told."""
    jobs = [elastic("a"), elastic("b")]
    assert settled([4, 2], {"a": 7}, jobs, restart_s=10.0) == [4, 2]
    assert settled([4, 2], {"a": 6}, jobs, restart_s=10.0) == [6, 2]


SERVED = Profile(
    batch=64,
    compute=Compute(0.01, {"GPU": 0.001}),
    sync=Sync("ps", gradient_mb=500.0),
    worker=Demand(1.0, 10.0),
    server=Demand(0.5, 5.0),
)


@pytest.mark.parametrize(("restart_s", "servers"), [(0.0, 4), (1e9, 2)])
def test_servers_change_only_where_that_pays(restart_s, servers):
    """The job runs with two workers and two servers; four servers are faster."""
    job = Job("a", 0.0, 2, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=8)
    yard = Yard(nodes_of(8), parse_policy("fifo").decide, Rules(restart_s=restart_s))
    yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    told = Shapes(np.array([2]), np.array([4]))
    after = settle(Told(yard.snapshot(0.0)), np.array([0]), told)
    assert (after.gpus.tolist(), after.servers.tolist()) == ([2], [servers])
