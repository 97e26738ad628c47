"""A plan in the making: whatever is tried, in the end the room is as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import PROFILES
from policy_cases import fair, nodes_of, room_of, snapshot_of
from stage_cases import EACH
from trainyard.core.check import check_plan
from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy
from trainyard.policy.place.pack import Pack
from trainyard.policy.policy import Policy
from trainyard.policy.request import Request
from trainyard.state.room import counts_of

# Thirds and tenths: sums of these depend on the order in which they are added.
CLUSTER = nodes_of(4, 4, 3)
JOBS = [
    Job("a", 0.0, 2, 100.0),
    Job("b", 0.0, 3, 100.0),
    Job("c", 0.0, 1, 100.0),
    Job("d", 0.0, 5, 100.0),
    Job("e", 0.0, 1, 100.0, cpus=0.1, memory_gb=1 / 3),
    Job("f", 0.0, 2, 100.0, cpus=0.7),
]
HELD = {"a": {"n0": 2}, "b": {"n1": 2, "n2": 1}, "c": {"n2": 1}}


def made():
    """A snapshot in which a, b and c run, and what is free of it."""
    snapshot = snapshot_of(CLUSTER, JOBS, HELD)
    free = snapshot.free
    free.cpus[:] = [cpus + 0.1 for cpus in free.cpus]
    free.memory_gb[:] = [gb / 3 for gb in free.memory_gb]
    return snapshot


def request(job_id, gpus=None, cpus=None, memory_gb=None):
    job = next(job for job in JOBS if job.job_id == job_id)
    return Request(job, gpus or job.gpus, cpus_per_gpu=cpus, memory_per_gpu=memory_gb)


STEPS = st.one_of(
    st.tuples(st.just("try"), st.sampled_from("abcdef"), st.sampled_from([None, 0.1, 1 / 3, 2.9])),
    st.tuples(st.just("release"), st.sampled_from("abcdef"), st.none()),
    st.tuples(st.sampled_from(["undo", "take back", "look"]), st.none(), st.none()),
    st.tuples(st.just("commit"), st.sampled_from("def"), st.sampled_from([0.3, 0.7])),
)


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=20))
def test_a_draft_leaves_the_room_as_it_was_to_the_last_bit(steps):
    snapshot = made()
    before, free = room_of(snapshot), snapshot.free
    draft, latest = Draft(snapshot), None
    for kind, job_id, number in steps:
        has = draft.changes.get(job_id, snapshot.target.get(job_id))
        if kind == "try" and has is None:
            found = draft.try_(Pack().find, request(job_id, cpus=number))
            latest = None if found is None else job_id
            assert found is None or draft.changes[job_id] is found
        elif kind == "release" and has is not None:
            draft.release(job_id)
            latest = None if latest == job_id else latest
        elif kind == "undo":
            draft.undo()
            latest = None
            assert (draft.changes, room_of(snapshot)) == ({}, before)
        elif kind == "take back" and latest is not None:
            draft.take_back()
            assert draft.changes.get(latest) is None
            latest = None
        elif kind == "look":
            latest = None
            assert draft.room is free
            assert free.total == sum(free.gpus)
            assert counts_of(free.levels) == {i: gpus for i, gpus in enumerate(free.gpus) if gpus}
        elif kind == "commit" and has is None:
            latest = job_id if draft.room.gpus[0] > 0 else None
            if latest is not None:
                share = Share("n0", 1, 0, number, number)
                draft.commit(request(job_id, 1, cpus=number), Allocation((share,)))
    changes = dict(draft.changes)
    assert draft.close() == changes
    assert room_of(snapshot) == before
    assert snapshot.free is free


def test_the_room_is_what_the_changes_leave():
    snapshot = snapshot_of(CLUSTER, JOBS, HELD)
    draft = Draft(snapshot)
    assert (draft.room.gpus, draft.room.total) == ([2, 2, 1], 5)
    assert draft.try_(Pack().find, request("f")) == fair(CLUSTER, {"n0": 2})
    assert (draft.room.gpus, draft.room.cpus[0], draft.room.total) == ([0, 2, 1], 0.0, 3)
    draft.release("b")
    assert (draft.room.gpus, draft.room.total) == ([0, 4, 2], 6)
    assert draft.try_(Pack().find, request("d")) == fair(CLUSTER, {"n1": 4, "n2": 1})
    assert draft.room.gpus == [0, 0, 1]
    assert draft.changes == {
        "f": fair(CLUSTER, {"n0": 2}),
        "b": None,
        "d": fair(CLUSTER, {"n1": 4, "n2": 1}),
    }


def test_what_finds_no_place_changes_nothing():
    snapshot = snapshot_of(CLUSTER, JOBS, HELD)
    draft = Draft(snapshot)
    draft.try_(Pack().find, request("f"))
    assert draft.try_(Pack().find, request("d")) is None
    assert (list(draft.changes), draft.room.gpus) == (["f"], [0, 2, 1])


def test_the_latest_try_can_be_taken_back():
    draft = Draft(snapshot_of(CLUSTER, JOBS, HELD))
    draft.try_(Pack().find, request("e"))
    draft.try_(Pack().find, request("f"))
    draft.take_back()
    assert (list(draft.changes), draft.room.gpus) == (["e"], [2, 2, 0])
    with pytest.raises(AssertionError):
        draft.take_back()  # only the latest, and only before anybody looked


def test_undone_is_as_if_it_had_never_been():
    snapshot = snapshot_of(CLUSTER, JOBS, HELD)
    before = room_of(snapshot)
    draft = Draft(snapshot)
    draft.release("a")
    draft.try_(Pack().find, request("f", cpus=0.3))
    assert draft.room is snapshot.free
    draft.undo()
    assert (draft.changes, room_of(snapshot)) == ({}, before)
    draft.try_(Pack().find, request("f"))
    assert draft.room.gpus == [0, 2, 1]
    assert draft.close() == {"f": fair(CLUSTER, {"n0": 2})}
    assert room_of(snapshot) == before


def test_shares_of_their_own_make_free_gpus_say_less():
    """Only as long as the draft is open."""
    snapshot = snapshot_of(CLUSTER, JOBS, HELD)
    draft = Draft(snapshot)
    draft.try_(Pack().find, request("f"))
    assert draft.room.plain
    draft.try_(Pack().find, request("e", memory_gb=0.5))
    assert not draft.room.plain
    draft.close()
    assert snapshot.free.plain


@pytest.mark.parametrize("policy", EACH)
@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_a_decision_leaves_the_snapshots_room_as_it_was(policy, rows):
    jobs = [
        Job(f"j{i}", 0.0, gpus, 50.0 + i, profile=None, cpus=0.7 if own else None)
        if PROFILES[kind] is None
        else Job(f"j{i}", 0.0, gpus, samples=1e5, profile=PROFILES[kind])
        for i, (gpus, kind, own) in enumerate(rows)
    ]
    held = {"j0": {"n0": min(jobs[0].gpus, 4)}} if jobs[0].gpus <= 4 and not jobs[0].particular else {}
    snapshot = snapshot_of(CLUSTER, jobs, held, 5.0)
    before, columns = room_of(snapshot), snapshot.table.data[:, : len(jobs)].copy()
    parse_policy(policy).decide(snapshot)
    assert room_of(snapshot) == before
    assert np.array_equal(snapshot.table.fork().data[:, : len(jobs)], columns)


# -- what a stage may do wrong, and what `improve` needs --------------------------------------------------


class MadeUp(Pack):
    """Gives every job the same, whether it is there or not."""

    def __init__(self, *shares):
        super().__init__()
        self.allocation = Allocation(tuple(shares))

    def find(self, request, free, nodes, seed):
        return self.allocation


@pytest.mark.parametrize("share", [Share("n0", 100, 0, 1.0, 1.0), Share("nowhere", 1, 0, 1.0, 1.0)])
@pytest.mark.parametrize("order", ["fifo(fill=greedy)", "srtf", "ftf"])
def test_what_a_stage_made_up_does_not_spoil_the_room(order, share):
    snapshot = made()
    before = room_of(snapshot)
    policy = Policy(order=parse_policy(order).order, place=MadeUp(Share("n1", 1, 0, 1.0, 1.0), share))
    with pytest.raises(PlanError):
        check_plan(snapshot, policy.decide(snapshot).changes)
    assert room_of(snapshot) == before


def test_nothing_is_taken_back_twice():
    snapshot = made()
    before, draft = room_of(snapshot), Draft(snapshot)
    draft.release("a")
    with pytest.raises(PlanError, match="job a has nothing any more"):
        draft.release("a")
    draft.close()
    assert room_of(snapshot) == before


def test_who_was_released_and_tried_is_released_again():
    draft = Draft(made())
    draft.release("a")
    free = draft.room.gpus.copy()
    assert draft.try_(Pack().find, request("a")) is not None
    draft.take_back()
    assert (draft.changes, draft.room.gpus) == ({"a": None}, free)


def test_who_was_placed_in_the_draft_can_be_moved():
    draft = Draft(made())
    free = draft.room.gpus.copy()
    for looks in (False, True):
        assert draft.try_(Pack().find, request("e")) is not None
        if looks:
            assert draft.room.total == sum(free) - 1
        draft.release("e")
        assert (draft.changes, draft.room.gpus) == ({}, free)


def test_the_room_follows_what_is_rewritten():
    snapshot = made()
    before, draft = room_of(snapshot), Draft(snapshot)
    draft.release("c")
    draft.rewrite({"a": None, "d": fair(CLUSTER, {"n0": 3, "n1": 2})})
    assert draft.room.gpus == [1, 0, 1]
    assert list(draft.close()) == ["a", "d"]
    assert room_of(snapshot) == before
