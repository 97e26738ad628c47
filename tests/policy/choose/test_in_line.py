"""The quick ways for whole gangs on one GPU type: all start, or the first in line replace the last."""

from __future__ import annotations

import pytest

from policy_cases import fair, nodes_of, room_of, snapshot_of
from trainyard.model.job import Job
from trainyard.policy.choose.in_line import start_all, swap
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy


def job(name, gpus, duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, **more)


def tried(way, policy, cluster, jobs, held=None):
    """Whether it could be done, and who has what if so."""
    snapshot = snapshot_of(cluster, jobs, held)
    draft, before = Draft(snapshot), room_of(snapshot)
    done = way(parse_policy(policy), draft)
    if not done:
        assert room_of(snapshot) == before  # nothing is left of what was tried
    changes = draft.close()
    assert room_of(snapshot) == before
    return done, {name: None if a is None else dict(a.workers) for name, a in changes.items()}


def test_all_start_if_there_are_gpus_for_all():
    jobs = [job("a", 2), job("b", 1), job("c", 1)]
    assert tried(start_all, "srtf", nodes_of(4), jobs, {"a": {"n0": 2}}) == (
        True,
        {"b": {"n0": 1}, "c": {"n0": 1}},
    )
    assert tried(start_all, "srtf", nodes_of(3), jobs, {"a": {"n0": 2}}) == (False, {})


def test_all_start_or_none():
    """Two are free, but on two nodes."""
    jobs = [job("r0", 1), job("r1", 1), job("a", 1), job("b", 2)]
    held = {"r0": {"n0": 1}, "r1": {"n1": 1}}
    assert tried(start_all, "srtf+pack(consolidate=require)", nodes_of(2, 3), jobs, held)[0]
    jobs[2] = job("a", 1, cpus=6.0)
    assert tried(start_all, "srtf", nodes_of(2, 3), jobs, held) == (False, {})


def test_who_has_another_size_than_it_asked_for_gets_that_if_all_fit():
    jobs = [job("a", 2, min_gpus=1, max_gpus=4), job("b", 1)]
    done, found = tried(start_all, "srtf", nodes_of(4), jobs, {"a": {"n0": 1}})
    assert done
    assert found == {"a": {"n0": 2}, "b": {"n0": 1}}


def test_the_first_in_line_takes_the_place_of_the_last():
    jobs = [job("long", 2, 300.0), job("mid", 2, 200.0), job("short", 2, 10.0), job("later", 2, 250.0)]
    held = {"long": {"n0": 2}, "mid": {"n1": 2}}
    assert tried(swap, "srtf", nodes_of(2, 2), jobs, held) == (True, {"long": None, "short": {"n0": 2}})


def test_nobody_waits_nobody_is_swapped():
    assert tried(swap, "srtf", nodes_of(2), [job("a", 2)], {"a": {"n0": 2}}) == (True, {})


FOUR = [job("a", 1, 300.0), job("b", 1, 10.0), job("c", 1, 300.0), job("d", 1, 10.0)]
APART = {name: {f"n{i // 2}": 1} for i, name in enumerate("abcd")}  # the long ones on two nodes


@pytest.mark.parametrize("policy", ["ftf", "srtf+pack(consolidate=require)"])
def test_nothing_is_drafted_where_it_cannot_be_done(policy):
    """Keys under ftf change while jobs wait; and two GPUs on two nodes are no place for `wide`."""
    jobs = [*FOUR, job("wide", 2, 20.0)]
    assert tried(swap, policy, nodes_of(2, 2), jobs, APART) == (False, {})


def test_a_decision_goes_the_slow_way_where_the_quick_one_fails():
    """`wide` finds no place, so nobody is stopped for it; `small`, behind it in line, does."""
    jobs = [*FOUR, job("wide", 2, 20.0), job("small", 1, 30.0)]
    snapshot = snapshot_of(nodes_of(2, 2), jobs, APART)
    plan = parse_policy("srtf+pack(consolidate=require)").decide(snapshot)
    assert {name for name, a in plan.changes.items() if a is not None} == {"small"}
    assert len(plan.allocations(snapshot.target)) == 4
    assert plan.changes["small"] in [fair(nodes_of(2, 2), {node: 1}) for node in ("n0", "n1")]
