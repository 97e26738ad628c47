"""Which GPU type each job takes: two types, worked out by hand."""

from __future__ import annotations

import pytest

from conftest import set_numbers
from policy_cases import snapshot_of, two_types
from trainyard.model.job import Job
from trainyard.policy.choose.pools import Pools

K80, V100, HELD_OR_MIXED = 0, 1, -1


def rigid(name, gpus=2, **more):
    return Job(name, 0.0, gpus, duration_s=100.0, **more)


def pools(*jobs, v100=2, k80=2, held=None, now_s=0.0, **rules):
    return Pools(snapshot_of(two_types(v100, k80), jobs, held, now_s, **rules))


def test_the_fastest_type_with_room_goes_first():
    made = pools(rigid("a"), rigid("b"), rigid("c"))
    assert [made.take(row, 2) for row in range(3)] == [V100, K80, None]
    assert made.left == [0, 0]


def test_a_job_that_does_not_fit_leaves_the_room_to_the_next():
    made = pools(rigid("a", 3), rigid("b", 2), rigid("c", 1), v100=3, k80=2)
    assert made.take(1, 2) == V100
    assert made.take(0, 3) is None
    assert made.left == [2, 1]
    assert made.take(2, 1) == V100


def test_types_are_mixed_only_for_what_no_type_could_ever_hold():
    made = pools(rigid("a", 4), rigid("b", 3), v100=3, k80=2)
    assert made.take(0, 4) == HELD_OR_MIXED
    assert made.left == [1, 0]
    fresh = pools(rigid("a", 1), rigid("b", 3), v100=3, k80=2)
    fresh.take(0, 1)
    assert fresh.take(1, 3) is None  # three would fit on V100s once the first is done


def test_a_mixture_may_take_everything_but_no_more():
    assert pools(rigid("a", 5), v100=3, k80=2).take(0, 5) == HELD_OR_MIXED
    made = pools(rigid("a", 6), v100=3, k80=2)
    assert made.take(0, 6) is None
    assert made.left == [2, 3]


def test_a_job_that_names_a_type_gets_that_one_or_waits():
    made = pools(rigid("a", gpu_type="K80"), rigid("b", gpu_type="K80"))
    assert made.take(0, 2) == K80
    assert made.take(1, 2) is None
    assert made.left == [0, 2]


def test_a_running_job_keeps_what_it_holds():
    made = pools(rigid("a"), rigid("b"), held={"a": {"v": 2}})
    assert made.take(0, 2) == HELD_OR_MIXED
    assert made.left == [2, 0]
    assert made.take(1, 2) == K80


def test_what_a_running_job_holds_counts_as_there_for_those_before_it():
    made = pools(rigid("a"), rigid("b"), held={"a": {"v": 2}})
    assert made.take(1, 2) == V100
    assert made.take(0, 2) == K80


def test_a_job_that_holds_a_mixture_keeps_it_only_as_a_whole():
    held = {"a": {"v": 1, "k": 1}}
    rules = {"restart_s": 1e6}
    assert pools(rigid("a"), rigid("b", 1), held=held, **rules).take(0, 2) == HELD_OR_MIXED
    made = pools(rigid("a"), rigid("b"), held=held, **rules)
    made.take(1, 2)
    assert made.take(0, 2) == K80


def test_another_size_is_a_new_request():
    made = pools(rigid("a"), held={"a": {"k": 2}}, restart_s=1e6)
    assert made.take(0, 1) == V100
    assert made.left == [2, 1]


# A job of 2 x 100 GPU-seconds has 400 seconds left on two K80s and 100 on two V100s: 300 fewer.


@pytest.mark.parametrize(("restart_s", "type_"), [(299.9, V100), (300.0, HELD_OR_MIXED)])
def test_a_job_moves_up_if_it_saves_more_than_its_restart(restart_s, type_):
    made = pools(rigid("a"), held={"a": {"k": 2}}, restart_s=restart_s)
    assert made.take(0, 2) == type_
    assert made.left == ([2, 0] if type_ == V100 else [0, 2])


@pytest.mark.parametrize(("restart_s", "type_"), [(224.9, V100), (225.0, HELD_OR_MIXED)])
def test_what_is_done_already_counts(restart_s, type_):
    """After 100 seconds 300 are left on K80s and 75 on V100s."""
    made = pools(rigid("a"), held={"a": {"k": 2}}, now_s=100.0, restart_s=restart_s)
    assert made.take(0, 2) == type_


def test_before_a_job_gets_going_it_has_done_nothing_yet():
    made = pools(rigid("a"), held={"a": {"k": 2}}, restart_s=310.0, start_s=50.0)
    assert made.take(0, 2) == HELD_OR_MIXED


def test_nobody_moves_where_there_is_too_little_room():
    made = pools(rigid("a"), rigid("b", 1), held={"a": {"k": 2}}, restart_s=0.0)
    assert made.take(1, 1) == V100
    assert made.take(0, 2) == HELD_OR_MIXED


def test_nobody_moves_down():
    made = pools(rigid("a"), held={"a": {"v": 2}}, restart_s=0.0)
    assert made.take(0, 2) == HELD_OR_MIXED
    assert made.left == [2, 0]


@pytest.mark.parametrize("more", [{"gpu_type": "K80"}, {"cpus": 6.0, "memory_gb": 120.0}])
def test_who_asks_for_something_special_is_not_moved(more):
    assert pools(rigid("a", **more), held={"a": {"k": 2}}, restart_s=0.0).take(0, 2) == HELD_OR_MIXED


def test_a_job_that_is_planned_but_does_not_run_yet_is_not_moved():
    made = pools(rigid("a"), held={"a": {"k": 2}}, restart_s=0.0)
    set_numbers(made.snapshot, "a", rate=0.0)
    assert made.take(0, 2) == HELD_OR_MIXED
