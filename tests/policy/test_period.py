"""Regular wake-ups: at multiples of a period, as long as anything runs."""

from __future__ import annotations

from math import inf

import pytest

from policy_cases import fair, nodes_of, snapshot_of
from trainyard.model.job import Job
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.period import Period
from trainyard.policy.policy import Policy

JOBS = [Job(f"j{i}", 0.0, 1, duration_s=100.0) for i in range(2)]


def woken(now_s, changes, held=None, round_s=100.0):
    snapshot = snapshot_of(nodes_of(4), JOBS, held, now_s)
    return Period(round_s).wake_s(snapshot, changes)


ONE = fair(nodes_of(4), {"n0": 1})


@pytest.mark.parametrize(("now_s", "at_s"), [(0.0, 100.0), (99.9, 100.0), (100.0, 200.0), (250.0, 300.0)])
def test_the_next_round_is_the_next_multiple(now_s, at_s):
    assert woken(now_s, {"j0": ONE}) == at_s


def test_a_round_is_asked_for_as_long_as_anything_runs():
    held = {"j0": {"n0": 1}}
    assert woken(50.0, {}, held) == 100.0
    assert woken(50.0, {"j0": None, "j1": ONE}, held) == 100.0
    assert woken(50.0, {"j0": None}, held) == inf
    assert woken(50.0, {}) == inf


def test_any_stage_may_have_a_period():
    class Often(Srtf):
        period_s = 30.0

    assert Policy(order=Often()).decide(snapshot_of(nodes_of(4), JOBS, now_s=40.0)).wake_s == 60.0
    assert Policy(order=Srtf()).decide(snapshot_of(nodes_of(4), JOBS, now_s=40.0)).wake_s == inf
