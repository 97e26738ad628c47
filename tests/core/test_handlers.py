"""Every event, at any time: it is handled, or it changes nothing and the answer says why."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_cases import Real, on, real
from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    DecisionsPaused,
    DecisionsResumed,
    Event,
    GpuFailed,
    GpuRepaired,
    JobCancelled,
    JobChanged,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    PolicyChanged,
    ProgressReported,
    ReservationDropped,
    ReservationMade,
    RulesChanged,
)
from trainyard.core.handlers import HANDLERS
from trainyard.core.instructions import Ignored, PlanRefused, Start, Stop
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Node
from trainyard.model.job import Job
from trainyard.model.profile import Input, Profile
from trainyard.model.reservation import Reservation
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State

HERE = Node("GPU-0", "GPU", 4, 12.0, 250.0)


def busy(**more):
    """`run` runs on GPU-0, `stop` is stopping on GPU-1, `wait` waits, `held` is held, `over` is done."""
    jobs = [real(name) for name in ("run", "stop", "wait", "over")]
    r = Real(*jobs, real("held", hold=True), nodes=3, policies=parse_policy, **more)
    r.decide(0.0, run=on(n0=4), stop=on(n1=4), over=on(n2=4))
    r.tell(JobFinished(1.0, "over"))
    assert r.decide(2.0, stop=None) == [Stop("stop")]
    return r


def reserved(**more):
    return ReservationMade(3.0, Reservation("r", **{"from_s": 5.0, "to_s": 9.0, **more}))


UNKNOWN_RULE = "the rule 'back_off' cannot be changed; did you mean 'back_off_s'?"
MOOT = [
    (JobSubmitted(3.0, real("run")), "there is a job run already"),
    (JobSubmitted(3.0, real("held")), "there is a job held already"),
    (JobSubmitted(3.0, real("over")), "there is a job over already"),
    (JobSubmitted(3.0, real("n", gpu_type="H100")), "no node has GPUs of type H100"),
    (JobSubmitted(3.0, real("n", after={"ghost": "ok"})), "it comes after job ghost, which is not known"),
    (JobSubmitted(3.0, real("n", after={"n": "any"})), "it comes after job n, which is not known"),
    *(
        (kind(3.0, "ghost", *more), "job ghost is not known")
        for kind, more in (
            (JobStarted, ()),
            (JobFinished, ()),
            (JobFailed, ("exit",)),
            (JobStopped, ()),
            (JobGone, ()),
            (JobCancelled, ()),
            (JobHeld, ()),
            (JobReleased, ()),
            (JobChanged, ({"priority": 1},)),
            (ProgressReported, (1.0,)),
            (CheckpointWritten, (1.0,)),
        )
    ),
    *(
        (kind(3.0, "over", *more), "job over is done")
        for kind, more in (
            (JobStarted, ()),
            (JobFinished, ()),
            (JobFailed, ("exit",)),
            (JobStopped, ()),
            (JobGone, ()),
            (JobCancelled, ()),
            (JobHeld, ()),
            (JobReleased, ()),
            (JobChanged, ({"priority": 1},)),
            (ProgressReported, (1.0,)),
            (CheckpointWritten, (1.0,)),
        )
    ),
    *(
        (kind(3.0, "wait", *more), "job wait is waiting")
        for kind, more in (
            (JobStarted, ()),
            (JobFinished, ()),
            (JobFailed, ("exit",)),
            (JobStopped, ()),
            (JobGone, ()),
        )
    ),
    (ProgressReported(3.0, "wait", 1.0), "job wait never ran"),
    (CheckpointWritten(3.0, "wait", 1.0), "job wait never ran"),
    (JobStarted(3.0, "run", gpus={"GPU-0": (0, 1, 2, 3)}), "nobody keeps track of GPUs by index here"),
    (JobFinished(3.0, "run", State.WAITING), "waiting is no end"),
    (JobFailed(3.0, "run", "odd"), "there is no end of kind odd"),
    (JobStopped(3.0, "run"), "job run is running"),
    (JobGone(3.0, "run", node="GPU-1"), "job run has nothing on node GPU-1"),
    (JobHeld(3.0, "held"), "job held is held already"),
    (JobReleased(3.0, "run"), "job run is not held"),
    (JobReleased(3.0, "wait"), "job wait is not held"),
    (JobRetried(3.0, "run"), "job run did not fail and was not cancelled, as far as is known"),
    (JobRetried(3.0, "over"), "job over did not fail and was not cancelled, as far as is known"),
    (JobRetried(3.0, "ghost"), "job ghost did not fail and was not cancelled, as far as is known"),
    (ProgressReported(3.0, "run", nan), "nan samples cannot be done"),
    (ProgressReported(3.0, "run", inf), "inf samples cannot be done"),
    (CheckpointWritten(3.0, "run", -1.0), "-1.0 samples cannot be done"),
    (NodeJoined(3.0, HERE), "node GPU-0 is here already"),
    (NodeJoined(3.0, Node("a~b", "GPU", 1, 1.0, 1.0)), "~ in the name of a node is for nodes that left"),
    *(
        (kind(3.0, "n9", *more), "there is no node n9")
        for kind, more in (
            (NodeLeft, ()),
            (NodeDrained, ()),
            (NodeUndrained, ()),
            (NodeFailed, ()),
            (NodeFenced, ()),
            (NodeRepaired, ()),
            (GpuFailed, (0,)),
            (GpuRepaired, (0,)),
        )
    ),
    (NodeUndrained(3.0, "GPU-0"), "node GPU-0 is not drained"),
    (NodeFenced(3.0, "GPU-0"), "node GPU-0 is up"),
    (NodeRepaired(3.0, "GPU-0"), "node GPU-0 is up"),
    (GpuFailed(3.0, "GPU-0", 4), "node GPU-0 has no GPU 4"),
    (GpuFailed(3.0, "GPU-0", -1), "node GPU-0 has no GPU -1"),
    (GpuRepaired(3.0, "GPU-0", 0), "GPU 0 of node GPU-0 did not fail"),
    (reserved(nodes=("n9",)), "there is no node n9"),
    (reserved(), "it reserves nothing: there is no node, or no time"),
    (reserved(nodes=("GPU-0",), to_s=5.0), "it reserves nothing: there is no node, or no time"),
    (
        reserved(nodes=("GPU-0",), from_s=1.0, to_s=2.0),
        "it reserves nothing: there is no node, or no time",
    ),
    (reserved(gpus=13), "reservation r: there are not 13 GPUs to reserve at that time"),
    (ReservationDropped(3.0, "r"), "there is no reservation r"),
    (RulesChanged(3.0, {"back_off": 5.0}), UNKNOWN_RULE),
    (RulesChanged(3.0, {"back_off_s": -1.0}), "the rule 'back_off_s' cannot be -1.0"),
    (RulesChanged(3.0, {"round_s": 0.0}), "the rule 'round_s' cannot be 0.0"),
    (RulesChanged(3.0, {"most_idle": 0}), "the rule 'most_idle' cannot be 0"),
    (RulesChanged(3.0, {"most_idle": 1.5}), "the rule 'most_idle' must be a whole number, not 1.5"),
    (RulesChanged(3.0, {"start_s": None}), "the rule 'start_s' cannot be None"),
    (DecisionsPaused(nan), "its time is nan"),
    (DecisionsResumed(3.0), "decisions are not paused"),
    (DecisionDue(nan), "its time is nan"),
    (DecisionDue(inf), "its time is inf"),
]


@pytest.mark.parametrize(("event", "why"), MOOT, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_what_cannot_be_is_ignored(event, why):
    assert busy().why(event) == why


def test_every_type_of_event_is_handled_and_can_be_ignored():
    assert set(HANDLERS) == set(Event.__args__)
    assert {type(event) for event, _ in MOOT} | {PolicyChanged} == set(HANDLERS)


TWICE = [
    (JobFinished(3.0, "run"), "job run is done"),
    (JobFinished(3.0, "stop"), "job stop is done"),
    (JobFailed(3.0, "run", "cannot_start"), "job run is failed"),
    (JobFailed(3.0, "run", "killed"), "job run is waiting"),
    (JobFailed(3.0, "run", "exit", gone=False), "job run is being killed already"),
    (JobStopped(3.0, "stop"), "job stop is waiting"),
    (JobGone(3.0, "run"), "job run is waiting"),
    (JobCancelled(3.0, "wait"), "job wait is cancelled"),
    (JobCancelled(3.0, "run"), "job run is being cancelled already"),
    (JobCancelled(3.0, "run", at_once=True), "job run is being cancelled already"),
    (JobHeld(3.0, "wait"), "job wait is held already"),
    (JobHeld(3.0, "run"), "job run is held already"),
    (JobReleased(3.0, "held"), "job held is not held"),
    (NodeJoined(3.0, Node("new", "GPU", 4, 12.0, 250.0)), "node new is here already"),
    (NodeLeft(3.0, "GPU-0"), "there is no node GPU-0"),
    (NodeDrained(3.0, "GPU-0"), "node GPU-0 is drained already"),
    (NodeFailed(3.0, "GPU-0"), "node GPU-0 is down already"),
    (GpuFailed(3.0, "GPU-0", 1), "GPU 1 of node GPU-0 failed already"),
    (reserved(nodes=("GPU-0",)), "there is a reservation r already"),
]


@pytest.mark.parametrize(("event", "why"), TWICE, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_what_comes_twice_is_ignored_the_second_time(event, why):
    r = busy()
    assert not any(isinstance(i, Ignored) for i in r.tell(event))
    assert r.why(event) == why


def test_more_that_comes_twice():
    r = busy()
    r.tell(NodeFailed(3.0, "GPU-0"))
    r.tell(NodeFenced(4.0, "GPU-0"))
    assert r.state("run") == "waiting"
    assert r.why(NodeFenced(5.0, "GPU-0")) == "nothing was left on node GPU-0"
    r.tell(NodeRepaired(6.0, "GPU-0"))
    assert r.why(NodeRepaired(7.0, "GPU-0")) == "node GPU-0 is up"
    r.tell(GpuFailed(8.0, "GPU-0", 3))
    r.tell(GpuRepaired(9.0, "GPU-0", 3))
    assert r.why(GpuRepaired(9.0, "GPU-0", 3)) == "GPU 3 of node GPU-0 did not fail"


def test_a_member_that_is_gone_twice():
    r = Real(real(gpus=8))
    r.decide(0.0, a=on(n0=4, n1=4))
    r.tell(JobCancelled(1.0, "a", at_once=True))
    assert r.tell(JobGone(2.0, "a", node="GPU-0")) == []
    assert r.why(JobGone(3.0, "a", node="GPU-0")) == "job a is gone from node GPU-0 already"
    (ended,) = r.tell(JobGone(4.0, "a", node="GPU-1"))
    assert ended.state is State.CANCELLED


def test_a_job_that_nobody_remembers_is_not_known():
    r = Real(real(), remember=0)
    r.decide(0.0, a=on(n0=4))
    r.tell(JobFinished(1.0, "a"))
    assert r.why(JobFinished(2.0, "a")) == "job a is not known"


def test_a_report_that_is_overtaken_by_a_later_one_is_ignored():
    r = busy()
    r.tell(ProgressReported(9.0, "run", 20.0))
    assert r.why(ProgressReported(8.0, "run", 19.0)) == "job run reported later already"


# -- attempts ------------------------------------------------------------------------------------------------


def test_a_late_end_of_a_killed_attempt_does_not_end_the_next_one():
    """[V] house 7."""
    r = Real(real(), nodes=1)
    (first,) = r.decide(0.0, a=on(n0=4))
    r.tell(NodeFailed(5.0, "GPU-0"))
    r.tell(NodeRepaired(6.0, "GPU-0"))
    (second,) = r.decide(7.0, a=on(n0=4))
    assert (first.attempt, second.attempt) == (1, 2)
    for late in (
        JobFinished(8.0, "a", attempt=1),
        JobFailed(8.0, "a", "exit", attempt=1),
        JobStopped(8.0, "a", 1),
        JobGone(8.0, "a", 1),
        JobStarted(8.0, "a", 1),
        ProgressReported(8.0, "a", 5.0, attempt=1),
        CheckpointWritten(8.0, "a", 5.0, attempt=1),
    ):
        assert r.why(late) == "it is about start 1 of job a, which is at 2"
    assert r.why(JobFinished(8.0, "a", attempt=3)) == "it is about start 3 of job a, which is at 2"
    (ended,) = r.tell(JobFinished(9.0, "a", attempt=2))
    assert ended.state is State.DONE


def test_instructions_carry_the_number_of_the_start():
    r = Real(real())
    for attempt in (1, 2, 3):
        now = 10.0 * attempt
        (start,) = r.decide(now, a=on(n0=4))
        (stop,) = r.decide(now + 1.0, a=None)
        assert (start.attempt, stop.attempt) == (attempt, attempt)
        r.stopped(now + 2.0, "a", attempt=attempt)


# -- time ----------------------------------------------------------------------------------------------------


def test_time_never_runs_back():
    """[V] house 7."""
    r = Real(real("a"), real("b"))
    r.decide(50.0, a=on(n0=4))
    (start,) = r.decide(20.0, b=on(n1=4))
    assert (r.yard.now_s, start.finish_s) == (50.0, 150.0)
    (ended,) = r.tell(JobFinished(10.0, "a"))
    assert (ended.finish_s, ended.gpu_s) == (50.0, 0.0)
    (ended,) = r.tell(JobFinished(-5.0, "b"))
    assert (ended.finish_s, ended.gpu_s) == (50.0, 0.0)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=8))
def test_the_time_is_the_latest_that_was_heard_of(times):
    r = Real(real())
    for k, time_s in enumerate(times):
        r.tell(DecisionDue(time_s))
        assert r.yard.now_s == r.yard.view.now_s == max(times[: k + 1])


# -- plans ---------------------------------------------------------------------------------------------------

FED = Profile(batch=1, input=Input(cpu_s_per_sample=6.0))


def test_a_plan_with_a_job_that_would_stand_still_changes_nothing():
    """[V] house 7."""
    r = Real(real("a"), real("b"), Job("fed", 0.0, 2, samples=100.0, profile=FED))
    r.decide(0.0, a=on(n0=4))
    before, told = r.look(), list(r.yard.story)
    still = Allocation((Share("GPU-1", 2, 0, 0.0, 125.0),))
    (refused,) = r.decide(5.0, a=None, b=on(n0=4), fed=still)
    assert refused == PlanRefused(
        "job fed: its profile gives 0 samples/s on 2 GPUs of GPU-1; it would never end"
    )
    after = r.look()
    assert (after["counts"].pop("refused"), before["counts"].pop("refused")) == (1, 0)
    for state in (before, after):  # that somebody was asked
        for name in ("now_s", "decided_s", "met"):
            del state["looks"][name]
        del state["counts"]["_met"], state["counts"]["_met_at"]
    assert after == before
    assert list(r.yard.story) == told
    (stop, start) = r.decide(6.0, a=None, b=on(n1=4))
    assert (stop, type(start), r.yard.refused) == (Stop("a"), Start, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"ghost": on(n0=4)},
        {"a": on(n0=3)},
        {"a": on(n0=4), "b": on(n0=4)},
        {"a": on(n9=4)},
        {"held": on(n0=4)},
    ],
    ids=lambda changes: "+".join(changes),
)
def test_plans_that_cannot_be_are_refused_and_counted(changes):
    r = Real(real("a"), real("b"), real("held", hold=True))
    (refused,) = r.decide(0.0, **changes)
    assert isinstance(refused, PlanRefused)
    assert (r.yard.refused, r.waiting(), r.yard.target) == (1, ["a", "b"], {})


# -- accounts ------------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_another_to_stop_gets_nothing_meanwhile():
    """[V] house 7."""
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    r.decide(10.0, a=None, b=on(n0=4))
    b = r.record("b")
    assert (b.attained_gpu_s(40.0), b.executed_s(40.0)) == (0.0, 0.0)
    view = r.yard.snapshot(40.0)
    assert (view.attained_gpu_s().tolist(), view.executed_s().tolist()) == ([40.0, 0.0], [10.0, 0.0])
    r.stopped(50.0, "a")
    assert (b.attained_gpu_s(60.0), b.executed_s(60.0)) == (40.0, 10.0)
    (ended,) = r.tell(JobFinished(150.0, "b"))
    assert (ended.gpu_s, ended.first_start_s) == (400.0, 50.0)


def test_a_plan_that_is_taken_back_before_the_start_costs_nothing():
    r = Real(real("a"), real("b"))
    r.decide(0.0, a=on(n0=4))
    r.decide(10.0, a=None, b=on(n0=4))
    r.decide(30.0, b=None)
    assert (r.record("b").attained, r.record("b").executed, r.record("b").attempt) == (0.0, 0.0, 0)


# -- policies ------------------------------------------------------------------------------------------------


def test_another_policy_decides_from_now_on():
    short = Job("short", 0.0, 8, 10.0)
    r = Real(Job("long", 0.0, 8, 1000.0), short, policies=parse_policy)
    assert r.tell(PolicyChanged(1.0, "srtf")) == []
    (start,) = r.tell(DecisionDue(2.0))
    assert start.job_id == "short"


def test_a_policy_that_counts_usage_knows_what_is_held_when_it_comes():
    r = Real(Job("a", 0.0, 4, 1000.0, tenant="t", user="u"), policies=parse_policy)
    r.decide(0.0, a=on(n0=4))
    assert r.yard.usage is None
    r.tell(PolicyChanged(5.0, "fairshare(half_life_s=100)"))
    assert r.yard.usage.gpus(("t",)) == r.yard.usage.gpus(("t", "u")) == 4
    assert r.yard.usage.gpu_s(("t",), 5.0) == 0.0


def test_policies_that_cannot_be_found():
    r = Real(real(), policies=parse_policy)
    assert "nonsense" in r.why(PolicyChanged(0.0, "nonsense"))
    assert Real(real()).why(PolicyChanged(0.0, "srtf")) == "no policy can be found by its name here"


# -- rules and pauses ----------------------------------------------------------------------------------------


def test_other_rules_hold_from_now_on():
    r = Real(real("a", retries=5))
    assert r.tell(RulesChanged(1.0, {"back_off_s": 3.0, "round_s": 60.0})) == []
    assert r.yard.rules == r.yard.view.rules == Rules(round_s=60.0, back_off_s=3.0)
    r.decide(2.0, a=on(n0=4))
    r.tell(JobFailed(5.0, "a", "exit"))
    assert r.yard.timers.due_s == 8.0


def test_nobody_is_asked_while_decisions_are_paused():
    r = Real(Job("a", 0.0, 8, 10.0), policies=parse_policy)
    r.tell(PolicyChanged(1.0, "srtf"))
    assert r.tell(DecisionsPaused(1.0)) == []
    assert r.why(DecisionsPaused(1.0)) == "decisions are paused already"
    assert r.why(DecisionDue(2.0)) == "decisions are paused"
    assert r.tell(DecisionsResumed(3.0)) == []
    assert [start.job_id for start in r.tell(DecisionDue(4.0))] == ["a"]


def test_a_pause_may_stop_everything_that_runs_and_what_was_going_to():
    r = busy()
    stops = r.tell(DecisionsPaused(3.0, stop=True))
    assert [(type(i), i.job_id) for i in stops] == [(Stop, "run")]
    assert list(r.yard.target) == []
    assert r.record("run").state is State.STOPPING
    r.tell(JobStopped(4.0, "run"))
    assert r.record("run").state is State.WAITING
    assert r.why(DecisionDue(5.0)) == "decisions are paused"


def test_a_pause_that_stopped_nothing_may_still_do_it():
    r = busy()
    r.tell(DecisionsPaused(3.0))
    assert [i.job_id for i in r.tell(DecisionsPaused(3.0, stop=True))] == ["run"]
    assert r.why(DecisionsPaused(3.0, stop=True)) == "decisions are paused already"


def test_another_half_life_counts_from_now_on():
    r = Real(Job("a", 0.0, 4, 1000.0, tenant="t"), policies=parse_policy)
    r.tell(PolicyChanged(0.0, "fairshare(half_life_s=1000000000)"))
    r.tell(DecisionDue(0.0))
    r.tell(JobFinished(100.0, "a"))
    r.tell(PolicyChanged(100.0, "fairshare(half_life_s=50)"))
    assert r.yard.usage.gpu_s(("t",), 100.0) == pytest.approx(400.0, rel=1e-6)
    assert r.yard.usage.gpu_s(("t",), 150.0) == pytest.approx(200.0, rel=1e-6)
