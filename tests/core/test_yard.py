"""The core, driven by hand: events in, instructions out."""

from __future__ import annotations

import pytest

from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeFenced,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import Ended, Fence, Kill, Retune, Start, Stop
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.state.jobs import Column
from trainyard.state.journal import KEPT
from trainyard.state.lifecycle import TERMINAL, TRANSITIONS, State


def yard_with(*jobs, policy="srtf", nodes=1, gpus=4, **costs):
    decide = parse_policy(policy).decide if isinstance(policy, str) else policy
    yard = Yard(uniform_cluster(nodes, gpus), decide, Rules(**costs))
    for job in jobs:
        yard.handle(JobSubmitted(job.arrival_s, job))
    validate(yard)
    return yard


def on(node, gpus, cpus=None):
    return Allocation((Share(node, gpus, 0, 3.0 * gpus if cpus is None else cpus, 62.5 * gpus),))


def states(yard, job_id):
    return [change.after for change in yard.story.of(job_id)]


def test_a_start_waits_until_the_job_it_replaces_is_gone():
    """Stops take time on a real cluster; nothing may be held twice meanwhile."""
    yard = yard_with(Job("long", 0.0, 4, 1000.0))
    (start,) = yard.handle(DecisionDue(0.0))
    assert isinstance(start, Start)
    assert start.finish_s == 1000.0
    yard.handle(JobSubmitted(10.0, Job("short", 10.0, 4, 5.0)))
    assert yard.handle(DecisionDue(10.0)) == [Stop("long")]
    validate(yard)
    assert states(yard, "long")[-1] is State.STOPPING
    assert states(yard, "short")[-1] is State.WAITING
    # Meanwhile policies see what is planned, and ask for nothing new.
    assert set(yard.snapshot(12.0).target) == {"short"}
    assert yard.handle(DecisionDue(12.0)) == []
    (start,) = yard.handle(JobStopped(17.0, "long"))
    validate(yard)
    assert (start.job_id, start.finish_s) == ("short", 22.0)


def test_a_job_that_is_still_stopping_can_be_planned_again():
    yard = yard_with(Job("a", 0.0, 4, 1000.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(JobSubmitted(10.0, Job("b", 10.0, 4, 5.0)))
    yard.handle(DecisionDue(10.0))
    yard.handle(JobCancelled(11.0, "b"))
    assert yard.handle(DecisionDue(12.0)) == []  # planned, but its old self is not gone yet
    validate(yard)
    (start,) = yard.handle(JobStopped(15.0, "a"))
    validate(yard)
    assert start.finish_s == pytest.approx(15.0 + 990.0)


def test_finishing_beats_the_stop():
    yard = yard_with(Job("a", 0.0, 4, 11.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(JobSubmitted(10.9, Job("b", 10.9, 4, 0.05)))
    assert yard.handle(DecisionDue(10.9)) == [Stop("a")]
    ended, start = yard.handle(JobFinished(11.0, "a"))
    validate(yard)
    assert isinstance(ended, Ended)
    assert ended.state is State.DONE
    assert start.job_id == "b"


def test_restart_and_start_costs():
    jobs = [Job("long", 0.0, 4, 100.0), Job("short", 10.0, 4, 5.0)]
    yard = yard_with(jobs[0], restart_s=7.0, start_s=2.0)
    (start,) = yard.handle(DecisionDue(0.0))
    assert start.finish_s == 102.0
    yard.handle(JobSubmitted(10.0, jobs[1]))
    yard.handle(DecisionDue(10.0))
    (start,) = yard.handle(JobStopped(10.0, "long"))
    assert start.finish_s == 10.0 + 2.0 + 5.0
    yard.handle(JobFinished(17.0, "short"))
    (start,) = yard.handle(DecisionDue(17.0))
    assert start.finish_s == 17.0 + 7.0 + 92.0  # 8 of 100 s were done


def test_a_failing_node_costs_the_work_since_the_last_checkpoint():
    yard = yard_with(Job("a", 0.0, 4, 1000.0, checkpoint_s=60.0), nodes=2)
    yard.handle(DecisionDue(0.0))
    assert yard.handle(NodeFailed(150.0, "GPU-0")) == [Kill("a"), Fence("GPU-0")]
    validate(yard)
    assert yard.up_gpus == 4
    assert yard.handle(DecisionDue(150.0)) == []  # planned elsewhere, but it may still run where it was
    (start,) = yard.handle(NodeFenced(150.0, "GPU-0"))
    assert start.allocation.shares[0].node == "GPU-1"
    assert start.finish_s == 150.0 + 1000.0 - 120.0
    yard.handle(NodeRepaired(200.0, "GPU-0"))
    validate(yard)
    assert yard.free.total == 4
    assert "node GPU-0 failed" in [c.cause for c in yard.story.of("a")]


def test_checkpoints_survive_a_change_of_cpus():
    plans = iter([{"a": on("GPU-0", 2)}, {"a": on("GPU-0", 2, cpus=4.0)}])
    yard = yard_with(
        Job("a", 0.0, 2, 1000.0, checkpoint_s=100.0),
        policy=lambda snapshot: Plan(next(plans)),
    )
    yard.handle(DecisionDue(0.0))
    (retune,) = yard.handle(DecisionDue(150.0))
    assert isinstance(retune, Retune)
    assert retune.finish_s == 1000.0  # no profile: CPUs make no difference
    validate(yard)
    yard.handle(NodeFailed(199.0, "GPU-0"))
    assert yard.snapshot(199.0).remaining_s()[0] == 900.0


def test_reported_progress_is_believed():
    yard = yard_with(Job("a", 0.0, 4, 100.0))
    yard.handle(DecisionDue(0.0))
    yard.handle(ProgressReported(50.0, "a", 4 * 20.0))
    # 80 of 100 s were left, at two fifths of the speed: 200 s, of which 10 are over.
    assert yard.snapshot(60.0).remaining_s()[0] == pytest.approx(190.0)


def test_cancelling_frees_the_gpus_and_tells_the_shell():
    yard = yard_with(Job("a", 0.0, 4, 100.0), Job("b", 0.0, 4, 200.0))
    yard.handle(DecisionDue(0.0))
    assert yard.handle(JobCancelled(5.0, "a")) == [Stop("a")]  # it may save its work
    (ended,) = yard.handle(JobStopped(5.5, "a"))
    assert ended.state is State.CANCELLED
    (gone,) = yard.handle(JobCancelled(6.0, "b"))  # never started: nothing to kill
    assert gone.first_start_s is None
    validate(yard)
    assert not yard.records
    assert states(yard, "b") == [State.SUBMITTED, State.WAITING, State.CANCELLED]


def test_impossible_changes_are_refused():
    yard = yard_with(Job("a", 0.0, 4, 100.0))
    (ignored,) = yard.handle(JobFinished(1.0, "a"))
    assert ignored.why == "job a is waiting"
    (ignored,) = yard.handle(JobSubmitted(1.0, Job("a", 0.0, 1, 1.0)))
    assert ignored.why == "there is a job a already"


def test_only_a_retry_leads_out_of_a_terminal_state():
    ways = {pair for pair in TRANSITIONS if pair[0] in TERMINAL}
    assert ways == {(State.FAILED, State.WAITING), (State.CANCELLED, State.WAITING)}
    assert {after for _, after in TRANSITIONS} == set(State)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": on("GPU-0", 5)}, "gets 5 GPUs but takes 4"),
        ({"a": on("GPU-0", 3)}, "gets 3 GPUs but takes 4"),
        ({"a": on("GPU-9", 4)}, "there is no node GPU-9"),
        ({"b": on("GPU-0", 4)}, "not active"),
        ({"a": on("GPU-0", 4, cpus=13.0)}, "over-allocated by 1 CPUs"),
        ({"a": on("GPU-0", 4, cpus=-1.0)}, "less than nothing"),
        ({"a": Allocation(on("GPU-0", 2).shares * 2)}, "named twice"),
        ({"a": on("GPU-0", 4), "c": on("GPU-0", 1)}, "over-allocated by 1 GPUs"),
    ],
)
def test_a_wrong_plan_fails_loudly(changes, message):
    jobs = (Job("a", 0.0, 4, 100.0), Job("c", 0.0, 1, 1.0))
    yard = yard_with(*jobs, policy=lambda snapshot: Plan(changes))
    with pytest.raises(PlanError, match=message):
        yard.decide(0.0)
    (refused,) = yard.handle(DecisionDue(0.0))  # live it is told, and counted
    assert message in refused.why
    assert yard.refused == 1
    validate(yard)  # and leaves everything as it was


def test_plans_know_what_runs():
    plan = Plan({"b": None, "c": on("n", 3)})
    target = {"a": on("n", 1), "b": on("n", 2)}
    assert plan.allocations(target) == {"a": on("n", 1), "c": on("n", 3)}
    assert target == {"a": on("n", 1), "b": on("n", 2)}


def test_the_story_reads_well():
    yard = yard_with(Job("a", 0.0, 4, 100.0))
    yard.handle(DecisionDue(3.0))
    assert str(yard.story.of("a")[-1]) == "3.000 s: a running on GPU-0 x4 (started)"


def test_fairness_counts_the_jobs_met():
    yard = yard_with(Job("a", 0.0, 4, 10.0), Job("b", 0.0, 4, 10.0), policy="fifo")
    yard.handle(DecisionDue(0.0))
    (ended,) = yard.handle(JobFinished(10.0, "a"))
    assert ended.fair_s == 20.0  # two jobs shared the cluster all the time
    yard.handle(DecisionDue(10.0))
    (ended,) = yard.handle(JobFinished(20.0, "b"))
    assert ended.fair_s == 15.0


def test_rows_stay_dense():
    yard = yard_with(*[Job(f"j{i}", 0.0, 1, 10.0 + i) for i in range(100)], gpus=100)
    yard.handle(DecisionDue(0.0))
    for i in (0, 50, 99, 1):
        yard.handle(JobFinished(200.0, f"j{i}"))
        validate(yard)
    assert sorted(yard.table.column(Column.SEQ).tolist()) == sorted(set(range(1, 101)) - {1, 51, 100, 2})


def test_the_journal_stays_short_while_plans_change_nothing():
    yard = Yard(uniform_cluster(1, 4), parse_policy("fifo").decide)
    yard.submit(0.0, Job("a", 0.0, 4, 1e6))
    yard.decide(0.0)
    for k in range(30_000):
        yard.take_report(yard.records["a"], ProgressReported(1.0 + k, "a", k + 1.0))
        yard.decide(1.0 + k)
    assert len(yard.table.changed.entries) <= KEPT + 1
    assert yard.table.changed.version > 30_000
