"""The table of allowed changes, row by row, and that nothing else is allowed."""

from __future__ import annotations

from itertools import product

import pytest

from trainyard.core.events import DecisionDue, JobCancelled, JobFinished, JobStopped, JobSubmitted, NodeFailed
from trainyard.core.instructions import Ignored, Kill
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import TransitionError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.state.lifecycle import AFTER, TERMINAL, TRANSITIONS, State

S = State
ALLOWED = {
    None: {S.SUBMITTED},
    S.SUBMITTED: {S.WAITING, S.CANCELLED},
    S.WAITING: {S.RUNNING, S.HELD, S.FAILED, S.CANCELLED},
    S.HELD: {S.WAITING, S.FAILED, S.CANCELLED},
    S.RUNNING: {S.RUNNING, S.STOPPING, S.KILLING, S.WAITING, S.HELD, S.DONE, S.FAILED, S.CANCELLED},
    S.STOPPING: {S.WAITING, S.KILLING, S.HELD, S.DONE, S.FAILED, S.CANCELLED},
    S.KILLING: {S.WAITING, S.HELD, S.DONE, S.FAILED, S.CANCELLED},
    S.DONE: set(),
    S.FAILED: {S.WAITING},
    S.CANCELLED: {S.WAITING},
}


def held(cpus=3.0):
    return Allocation((Share("GPU-0", 1, 0, cpus, 62.5),))


def yard_in(state):
    """A yard whose one job is in this state."""
    plans = iter([{"a": held()}, {"a": None}])
    yard = Yard(uniform_cluster(1, 4), lambda snapshot: Plan(next(plans)))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 1, 100.0)))
    for _ in range([S.WAITING, S.RUNNING, S.STOPPING].index(state)):
        yard.handle(DecisionDue(1.0))
    assert yard.records["a"].state is state
    return yard


@pytest.mark.parametrize(("before", "after"), list(product([None, *S], S)), ids=str)
def test_only_these_changes_are_allowed(before, after):
    allowed = after in ALLOWED[before]
    assert ((before, after) in TRANSITIONS) == allowed
    assert (after in AFTER[before]) == allowed


def test_every_change_says_why():
    assert all(TRANSITIONS.values())


def test_only_a_retry_leaves_a_terminal_state():
    assert {state for state in S if AFTER[state] <= {S.WAITING}} == TERMINAL


EVENTS = [
    (JobFinished(5.0, "a"), S.DONE, "all work done"),
    (JobFinished(5.0, "a", S.FAILED), S.FAILED, "ended by itself"),
    (JobCancelled(5.0, "a"), S.CANCELLED, "cancelled by its user"),
]


@pytest.mark.parametrize("state", [S.WAITING, S.RUNNING, S.STOPPING])
@pytest.mark.parametrize(("event", "after", "cause"), EVENTS, ids=str)
def test_events_change_states_by_the_table(state, event, after, cause):
    yard = yard_in(state)
    if state is S.WAITING and not isinstance(event, JobCancelled):
        assert yard.handle(event) == [Ignored(event, "job a is waiting")]
        return
    yard.handle(event)
    if state is not S.WAITING and after is S.CANCELLED:
        assert yard.story.of("a")[-1].after is S.STOPPING  # it may save its work first
        yard.handle(JobStopped(5.0, "a"))
        state = S.STOPPING
    change = yard.story.of("a")[-1]
    assert (change.time_s, change.before, change.after, change.cause) == (5.0, state, after, cause)


def test_a_stop_is_confirmed_only_for_a_job_that_stops():
    waiting = yard_in(S.WAITING)
    with pytest.raises(TransitionError, match="job a cannot go from waiting to waiting"):
        waiting.stopped(5.0, [waiting.records["a"]])
    late = JobStopped(5.0, "a")
    assert yard_in(S.WAITING).handle(late) == [Ignored(late, "job a is waiting")]
    yard = yard_in(S.STOPPING)
    assert yard.handle(JobStopped(5.0, "a")) == []
    change = yard.story.of("a")[-1]
    assert (change.before, change.after, change.cause) == (S.STOPPING, S.WAITING, "stopped and saved")
    validate(yard)


@pytest.mark.parametrize(("state", "kills"), [(S.WAITING, []), (S.RUNNING, ["a"]), (S.STOPPING, ["a"])])
def test_only_a_job_with_processes_is_killed(state, kills):
    for event in (JobCancelled(5.0, "a", at_once=True), NodeFailed(5.0, "GPU-0")):
        yard = yard_in(state)
        out = yard.handle(event)
        assert [i.job_id for i in out if isinstance(i, Kill)] == kills
        validate(yard)


def test_a_change_of_cpus_is_a_change_to_the_same_state():
    plans = iter([{"a": held()}, {"a": held(cpus=4.0)}])
    yard = Yard(uniform_cluster(1, 4), lambda snapshot: Plan(next(plans)))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 1, 100.0)))
    yard.handle(DecisionDue(0.0))
    yard.handle(DecisionDue(5.0))
    change = yard.story.of("a")[-1]
    assert (change.before, change.after, change.cause) == (S.RUNNING, S.RUNNING, "CPUs or memory change")
    assert change.allocation == held(cpus=4.0)
