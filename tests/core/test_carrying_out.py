"""How plans are carried out while stops take their time: who starts when, and what it costs."""

from __future__ import annotations

from math import inf

import pytest

from conftest import APART
from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobFinished,
    JobGone,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
)
from trainyard.core.instructions import DecideAt, Fence, Ignored, Kill, Retune, Start, Stop
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import TransitionError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Input, Profile
from trainyard.model.rules import Rules
from trainyard.state.lifecycle import State


def on(cpus=None, **gpus):
    """GPUs of nodes n0, n1, ... with three CPUs each, or so many in all."""
    nodes = {f"GPU-{name[1:]}": count for name, count in gpus.items()}
    return Allocation(
        tuple(
            Share(node, count, 0, 3.0 * count if cpus is None else cpus, 62.5 * count)
            for node, count in nodes.items()
        )
    )


class Driven:
    """A yard whose decisions the test takes; every event is followed by a validation."""

    def __init__(self, *jobs, nodes=2, cluster=None, **rules):
        self.plan = Plan()
        self.yard = Yard(cluster or uniform_cluster(nodes, 4), lambda _: self.plan, Rules(**rules))
        for job in jobs:
            self.tell(JobSubmitted(job.arrival_s, job))

    def tell(self, event):
        out = self.yard.handle(event)
        validate(self.yard)
        return out

    def decide(self, now, wake_s=inf, **changes):
        self.plan = Plan(changes, wake_s)
        return self.tell(DecisionDue(now))

    def waiting(self):
        return [record.job_id for record in self.yard.waiting]


def four(*names, **fields):
    return [Job(name, 0.0, 4, 100.0, **fields) for name in names]


def started(instructions):
    assert all(isinstance(i, Start) for i in instructions)
    return [i.job_id for i in instructions]


def test_a_gang_that_leaves_two_nodes_makes_room_on_both():
    yard = Driven(Job("wide", 0.0, 8, 100.0), *four("b", "c"))
    yard.decide(0.0, wide=on(n0=4, n1=4))
    assert yard.decide(5.0, wide=None, b=on(n0=4), c=on(n1=4)) == [Stop("wide")]
    assert started(yard.tell(JobStopped(9.0, "wide"))) == ["b", "c"]


def test_a_gang_waits_for_the_last_of_its_nodes():
    yard = Driven(*four("a", "b"), Job("wide", 0.0, 8, 100.0))
    yard.decide(0.0, a=on(n0=4), b=on(n1=4))
    assert yard.decide(5.0, a=None, b=None, wide=on(n0=4, n1=4)) == [Stop("a"), Stop("b")]
    assert yard.tell(JobStopped(6.0, "a")) == []
    assert started(yard.tell(JobStopped(9.0, "b"))) == ["wide"]


def test_a_start_waits_for_all_who_leave_its_node():
    yard = Driven(Job("a", 0.0, 2, 100.0), Job("b", 0.0, 2, 100.0), *four("c"))
    yard.decide(0.0, a=on(n0=2), b=on(n0=2))
    yard.decide(5.0, a=None, b=None, c=on(n0=4))
    assert yard.tell(JobStopped(6.0, "b")) == []
    assert started(yard.tell(JobStopped(7.0, "a"))) == ["c"]


def test_nobody_waits_for_a_node_that_nobody_leaves():
    yard = Driven(*four("a", "b"), Job("c", 0.0, 4, 50.0))
    yard.decide(0.0, a=on(n0=4))
    stop, start = yard.decide(5.0, a=None, b=on(n0=4), c=on(n1=4))
    assert (stop, start.job_id, start.finish_s) == (Stop("a"), "c", 55.0)


def test_stopping_blocks_the_whole_node_though_some_of_it_is_free():
    yard = Driven(Job("a", 0.0, 2, 100.0), Job("b", 0.0, 2, 100.0))
    yard.decide(0.0, a=on(n0=2))
    assert yard.decide(5.0, a=None, b=on(n0=2)) == [Stop("a")]
    assert started(yard.tell(JobStopped(6.0, "a"))) == ["b"]


def test_a_job_that_grows_stops_and_starts_again():
    yard = Driven(Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4), restart_s=3.0)
    yard.decide(0.0, a=on(n0=2))
    assert yard.decide(10.0, a=on(n0=4)) == [Stop("a")]
    (start,) = yard.tell(JobStopped(12.0, "a"))
    assert start == Start("a", on(n0=4), 4.0, 12.0 + 3.0 + (200.0 - 20.0) / 4, 2.0)
    assert (yard.yard.records["a"].restarts, yard.yard.records["a"].preemptions) == (1, 0)
    causes = [change.cause for change in yard.yard.story.of("a")]
    assert causes[-4:] == ["started", "its workers change", "stopped and saved", "resumed"]


def test_a_job_that_shrinks_learns_more_slowly():
    yard = Driven(Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4))
    yard.decide(0.0, a=on(n0=4))
    yard.decide(10.0, a=on(n0=1))
    (start,) = yard.tell(JobStopped(10.0, "a"))
    assert start.lr_factor == 0.25


def test_a_server_more_is_a_restart():
    server = Share("GPU-1", 0, 1, 0.5, 4.0)
    one, two = Share("GPU-0", 2, 1, 2.5, 20.0), Share("GPU-0", 2, 2, 3.0, 24.0)
    yard = Driven(Job("a", 0.0, 2, samples=1e6, profile=APART))
    yard.decide(0.0, a=Allocation((one,)))
    assert yard.decide(1.0, a=Allocation((two,))) == [Stop("a")]
    yard.tell(JobStopped(1.0, "a"))
    assert yard.decide(2.0, a=Allocation((one, server))) == [Stop("a")]


def test_the_same_plan_again_changes_nothing():
    yard = Driven(*four("a", "b"))
    yard.decide(0.0, a=on(n0=4))
    told = list(yard.yard.story)
    assert yard.decide(5.0, a=on(n0=4)) == []
    assert yard.decide(6.0, b=None) == []  # it waits already
    assert list(yard.yard.story) == told


def test_more_cpus_wait_until_another_has_left_them():
    yard = Driven(Job("a", 0.0, 2, 100.0), Job("b", 0.0, 2, 100.0))
    yard.decide(0.0, a=on(n0=2), b=on(n0=2))
    assert yard.decide(5.0, b=None, a=on(n0=2, cpus=9.0)) == [Stop("b")]
    (retune,) = yard.tell(JobStopped(8.0, "b"))
    assert retune == Retune("a", on(n0=2, cpus=9.0), 2.0, 100.0)


def test_a_change_of_cpus_while_a_job_starts_keeps_its_start():
    yard = Driven(Job("a", 0.0, 2, 100.0), start_s=30.0)
    yard.decide(0.0, a=on(n0=2))
    (retune,) = yard.decide(10.0, a=on(n0=2, cpus=9.0))
    assert retune.finish_s == 130.0


def test_slower_input_takes_longer_from_the_change_on():
    fed = Profile(batch=1, input=Input(cpu_s_per_sample=6.0))
    yard = Driven(Job("a", 0.0, 2, samples=100.0, profile=fed))
    (start,) = yard.decide(0.0, a=on(n0=2))
    assert (start.samples_per_s, start.finish_s) == (1.0, 100.0)
    (retune,) = yard.decide(40.0, a=on(n0=2, cpus=3.0))
    assert (retune.samples_per_s, retune.finish_s) == (0.5, 40.0 + 60.0 / 0.5)


def test_what_was_planned_can_be_taken_back_before_it_starts():
    yard = Driven(*four("a", "b"))
    yard.decide(0.0, a=on(n0=4))
    yard.decide(5.0, a=None, b=on(n0=4))
    assert yard.decide(6.0, b=None) == []
    assert yard.yard.records["b"].preemptions == 0  # it never ran
    assert yard.tell(JobStopped(7.0, "a")) == []
    assert yard.waiting() == ["a", "b"]


def test_preemptions_and_restarts_are_counted():
    yard = Driven(*four("a", "b"))
    for k in range(3):
        yard.decide(10.0 * k, a=on(n0=4))
        yard.decide(10.0 * k + 5, a=None)
        yard.tell(JobStopped(10.0 * k + 5, "a"))
    record = yard.yard.records["a"]
    assert (record.preemptions, record.restarts) == (3, 2)
    assert (record.attained, record.executed) == (3 * 5 * 4.0, 15.0)
    assert yard.yard.story.of("a")[-2].cause == "preempted"


def test_a_cancelled_job_makes_room_though_it_was_still_stopping():
    yard = Driven(*four("a", "b"))
    yard.decide(0.0, a=on(n0=4))
    yard.decide(5.0, a=None, b=on(n0=4))
    assert yard.tell(JobCancelled(6.0, "a")) == []  # it was told to stop before
    assert yard.tell(JobCancelled(7.0, "a", at_once=True)) == [Kill("a")]
    ended, start = yard.tell(JobGone(8.0, "a"))
    assert (ended.state, ended.finish_s, start.job_id) == (State.CANCELLED, 8.0, "b")


def test_a_job_that_ends_while_it_is_replanned_ends_for_good():
    yard = Driven(Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=4))
    yard.decide(0.0, a=on(n0=2))
    yard.decide(5.0, a=on(n0=4))
    (ended,) = yard.tell(JobFinished(6.0, "a"))
    assert ended.gpu_s == 5 * 2  # what was planned for it was not yet had
    assert (yard.yard.pending, yard.yard.target, yard.yard.records) == ({}, {}, {})


@pytest.mark.parametrize("past_s", [4.0, 5.0])
def test_wakes_are_for_the_future(past_s):
    yard = Driven(*four("a"))
    _, wake = yard.decide(5.0, wake_s=5.5, a=on(n0=4))
    assert wake == DecideAt(5.5)
    assert yard.decide(5.0, wake_s=past_s) == [DecideAt(inf)]  # that is over: no earlier wish holds either
    assert yard.decide(6.0, wake_s=7.0) == [DecideAt(7.0)]  # without any change, too


def test_a_wish_to_be_asked_again_is_said_once_and_replaces_the_one_before():
    yard = Driven(*four("a"))
    assert yard.decide(0.0) == []  # nothing was ever wished for
    assert yard.decide(1.0, wake_s=9.0) == [DecideAt(9.0)]
    assert yard.decide(2.0, wake_s=9.0) == []
    assert yard.decide(3.0, wake_s=12.0) == [DecideAt(12.0)]
    assert yard.decide(4.0, wake_s=8.0) == [DecideAt(8.0)]
    assert yard.decide(5.0) == [DecideAt(inf)]
    assert yard.decide(6.0) == []


def test_a_node_that_fails_twice_is_down_once():
    yard = Driven(*four("a"))
    yard.decide(0.0, a=on(n0=4))
    assert yard.tell(NodeFailed(5.0, "GPU-0")) == [Kill("a"), Fence("GPU-0")]
    again = NodeFailed(6.0, "GPU-0")
    assert yard.tell(again) == [Ignored(again, "node GPU-0 is down already")]
    assert (yard.yard.up_gpus, yard.yard.free.gpus) == (4, [0, 4])
    yard.tell(NodeRepaired(7.0, "GPU-0"))
    yard.tell(NodeRepaired(8.0, "GPU-0"))
    assert (yard.yard.up_gpus, yard.yard.free.gpus) == (8, [4, 4])
    assert yard.yard.free.cpus == [12.0, 12.0]


def test_a_failure_frees_what_the_gang_held_elsewhere():
    yard = Driven(Job("wide", 0.0, 6, 100.0))
    yard.decide(0.0, wide=on(n0=4, n1=2))
    yard.tell(NodeFailed(5.0, "GPU-1"))
    assert yard.yard.free.gpus == [4, 0]
    assert yard.waiting() == ["wide"]


def test_a_failure_leaves_others_alone():
    yard = Driven(*four("a", "b"))
    yard.decide(0.0, a=on(n0=4), b=on(n1=4))
    assert yard.tell(NodeFailed(5.0, "GPU-1")) == [Kill("b"), Fence("GPU-1")]
    assert yard.yard.snapshot(6.0).remaining_s().tolist() == [94.0, 100.0]


def test_a_plan_for_a_node_that_fails_is_dropped():
    yard = Driven(*four("a", "b"))
    yard.decide(0.0, a=on(n0=4))
    yard.decide(5.0, a=None, b=on(n0=4))
    told = yard.tell(NodeFailed(6.0, "GPU-0"))
    assert told == [Kill("a"), Fence("GPU-0")]  # `b` never started: nothing to kill
    assert yard.waiting() == ["a", "b"]
    assert yard.yard.snapshot(6.0).remaining_s().tolist() == [95.0, 100.0]  # saved when it was stopped


def test_a_failure_may_end_the_wait_of_another():
    yard = Driven(*four("b"), Job("wide", 0.0, 8, 100.0), Job("c", 0.0, 4, 9.0))
    yard.decide(0.0, wide=on(n0=4, n1=4))
    yard.decide(5.0, wide=None, c=on(n1=4), b=on(n0=4))
    assert yard.tell(NodeFailed(6.0, "GPU-0")) == [Kill("wide"), Fence("GPU-0")]
    (start,) = yard.tell(JobGone(7.0, "wide", node="GPU-1"))  # of the other node nothing is known yet
    assert start.job_id == "c"


def test_an_allocation_that_stands_still_is_refused():
    fed = Profile(batch=1, input=Input(cpu_s_per_sample=6.0))
    yard = Driven(Job("a", 0.0, 2, samples=100.0, profile=fed))
    (refused,) = yard.decide(0.0, a=on(n0=2, cpus=0.0))
    assert refused.why.startswith("job a: its profile gives 0 samples/s on 2 GPUs of GPU-0; it would")
    assert yard.waiting() == ["a"]


def test_a_job_that_can_never_end_is_refused_at_the_door():
    bare = Cluster("no CPUs", (Node("GPU-0", "GPU", 4, 0.0, 64.0),))
    fed = Profile(batch=1, input=Input(cpu_s_per_sample=6.0))
    (ignored,) = Driven(cluster=bare).tell(JobSubmitted(0.0, Job("a", 0.0, 2, samples=100.0, profile=fed)))
    assert "job a: its profile gives 0 samples/s with 2 GPUs and their share" in ignored.why


def test_free_gpus_tell_of_free_cpus_while_shares_are_proportional():
    yard = Driven(Job("a", 0.0, 2, 100.0), Job("b", 0.0, 1, 100.0))
    yard.decide(0.0, a=on(n0=2))
    assert yard.yard.snapshot(0.0).free.plain
    yard.decide(1.0, a=on(n0=2, cpus=5.0))
    assert not yard.yard.snapshot(1.0).free.plain
    yard.decide(2.0, b=on(n1=1, cpus=1.0))
    yard.tell(JobFinished(3.0, "a"))
    assert not yard.yard.snapshot(3.0).free.plain
    yard.tell(JobFinished(4.0, "b"))
    assert yard.yard.snapshot(4.0).free.plain


def test_memory_of_its_own_choice_counts_as_well():
    yard = Driven(Job("a", 0.0, 2, 100.0))
    yard.decide(0.0, a=Allocation((Share("GPU-0", 2, 0, 6.0, 100.0),)))
    assert not yard.yard.snapshot(0.0).free.plain


def test_if_one_of_several_did_not_stop_none_is_taken_for_stopped():
    driven = Driven(*four("a", "b", "c"))
    driven.decide(0.0, a=on(n0=4), b=on(n1=4))
    driven.decide(1.0, a=None, c=on(n0=4))
    yard = driven.yard
    told = list(yard.story)
    with pytest.raises(TransitionError, match="job b cannot go from running to waiting"):
        yard.stopped(2.0, [yard.records["a"], yard.records["b"]])
    assert (yard.records["a"].state, list(yard.pending)) == (State.STOPPING, ["c"])
    assert list(yard.story) == told
    validate(yard)
    (start,) = driven.tell(JobStopped(3.0, "a"))
    assert start.job_id == "c"
