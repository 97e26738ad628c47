"""Trying out sizes: which comes next, for how long, and when to look again."""

from __future__ import annotations

from math import inf

import pytest

from policy_cases import fair, nodes_of, snapshot_of, yard_of
from trainyard.core.events import ProgressReported
from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.size.trials import EXPLORE_S, Explorer, explorer_for

SIZES = [(1, 0), (2, 0), (4, 0)]


def elastic(name="a"):
    return Job(name, 0.0, 2, duration_s=1000.0, min_gpus=1, max_gpus=8)


def tried(**seconds):
    """A snapshot in which job a ran so many seconds with so many GPUs: `two=30.0`."""
    snapshot = snapshot_of(nodes_of(8), [elastic(), Job("rigid", 0.0, 2, duration_s=10.0)])
    for name, spent_s in seconds.items():
        size = {"one": 1, "two": 2, "four": 4}[name]
        snapshot.table.of["a"].see().ran_at((size, 0), spent_s, 10.0)
    return snapshot


def test_the_first_size_that_was_not_tried_for_long_enough():
    explorer = Explorer(100.0)
    assert explorer.next(tried(), 0, SIZES) == (1, 0)
    assert explorer.next(tried(one=100.0), 0, SIZES) == (2, 0)
    assert explorer.next(tried(one=99.0), 0, SIZES) == (1, 0)
    assert explorer.next(tried(one=100.0, four=100.0), 0, SIZES) == (2, 0)
    assert explorer.next(tried(one=100.0, two=100.0, four=100.0), 0, SIZES) is None


def test_rounding_does_not_make_a_trial_last():
    assert Explorer(100.0).next(tried(one=99.91), 0, SIZES) == (2, 0)
    assert Explorer(100.0).next(tried(one=99.89), 0, SIZES) == (1, 0)


def test_a_rigid_job_has_nothing_to_try():
    assert Explorer(100.0).next(tried(), 1, SIZES) is None


def test_what_a_job_does_now_counts():
    snapshot = snapshot_of(nodes_of(8), [elastic()], {"a": {"n0": 1}}, 100.0)
    assert Explorer(100.0).next(snapshot, 0, SIZES) == (2, 0)
    assert Explorer(150.0).next(snapshot, 0, SIZES) == (1, 0)


def starts(snapshot, gpus=2, name="a"):
    return Explorer(100.0).wake_s(snapshot, {name: fair(nodes_of(8), {"n0": gpus})})


def test_a_trial_wakes_when_it_has_lasted_long_enough():
    assert starts(tried()) == 100.0
    assert starts(tried(two=30.0)) == 70.0
    assert starts(tried(one=30.0)) == 100.0
    assert starts(tried(two=99.5)) == 0.5
    assert starts(tried(two=100.0)) == inf


@pytest.mark.parametrize(("now_s", "at_s"), [(0.0, 107.0), (5.0, 107.0), (106.0, 107.0), (107.0, inf)])
def test_a_trial_that_goes_on_wakes_at_the_same_time(now_s, at_s):
    """However often anybody decides meanwhile."""
    snapshot = snapshot_of(nodes_of(8), [elastic()], {"a": {"n0": 1}}, now_s, start_s=7.0)
    assert Explorer(100.0).wake_s(snapshot, {}) == at_s


def test_the_first_trial_to_end_counts():
    held = {"a": {"n0": 1}, "b": {"n0": 2}}
    snapshot = snapshot_of(nodes_of(8), [elastic("a"), elastic("b"), elastic("c")], held, 30.0)
    snapshot.table.of["b"].see().ran_at((2, 0), 60.0, 10.0)
    new = {"c": fair(nodes_of(8), {"n0": 1})}
    assert Explorer(100.0).wake_s(snapshot, new) == 40.0
    assert Explorer(100.0).wake_s(snapshot, {**new, "b": None}) == 100.0
    assert Explorer(100.0).wake_s(snapshot, {**new, "a": None, "b": None}) == 130.0


def test_a_report_does_not_move_the_end_of_a_trial():
    """What the job has done at this size is then known already; the rest of the trial is to come."""
    yard = yard_of(nodes_of(8), [elastic()], {"a": {"n0": 1}})
    yard.handle(ProgressReported(60.0, "a", 60.0))
    assert Explorer(100.0).wake_s(yard.snapshot(60.0), {}) == 100.0


def test_the_time_of_a_start_or_restart_does_not_count():
    """A first start costs start_s, any other restart_s."""
    snapshot = snapshot_of(nodes_of(8), [elastic()], start_s=7.0, restart_s=9.0)
    assert starts(snapshot) == 107.0
    snapshot.table.of["a"].first_start_s = 0.0
    assert starts(snapshot) == 109.0


def test_nobody_wakes_for_who_stops_or_is_rigid():
    assert Explorer(100.0).wake_s(tried(), {"a": None}) == inf
    assert starts(tried(), name="rigid") == inf


def test_wakes_count_from_now():
    assert starts(snapshot_of(nodes_of(8), [elastic()], now_s=40.0)) == 140.0


def test_an_explorer_if_one_is_wanted():
    assert explorer_for(False, None, "learn") is None
    assert explorer_for(True, None, "learn").explore_s == EXPLORE_S
    assert explorer_for(True, 5.0, "learn").explore_s == 5.0
    with pytest.raises(InputError, match="explore_s=5 has no meaning without learn"):
        explorer_for(False, 5.0, "learn")


@pytest.mark.parametrize("explore_s", [0.0, -1.0])
def test_a_trial_takes_time(explore_s):
    with pytest.raises(InputError, match="give seconds above 0"):
        Explorer(explore_s)
    assert Explorer(0.5).explore_s == 0.5


def test_whole_gangs_have_no_other_size():
    snapshot = tried()
    assert Fixed().shapes(snapshot, snapshot.waiting_rows()).shapes.gpus.tolist() == [2, 2]
    assert list(Fixed().smaller(elastic(), 8)) == []
