"""What happens at which moment: order of equal times, rounds, wakes, watchers."""

from __future__ import annotations

from math import inf

import pytest

from conftest import checked, finishes
from trainyard.errors import InputError
from trainyard.model.allocation import Plan
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.policy import Policy
from trainyard.policy.size.fixed import Fixed
from trainyard.sim.clock import OUTCOMES, Simulator
from trainyard.sim.failures import Failure
from trainyard.state.lifecycle import State


class Watching:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def deciding(self, snapshot):
        self.told.append((snapshot.now_s, len(snapshot.table)))

    def ended(self, end):
        self.told.append(end.job.job_id)


class Sleepy:
    """Fifo that asks to be woken some time after each decision, as long as anything runs."""

    name = "sleepy"
    order, size = Fifo(), Fixed()

    def __init__(self, after_s):
        self.after_s, self.asked = after_s, []

    def decide(self, snapshot):
        plan = Policy("fifo").decide(snapshot)
        self.asked.append(snapshot.now_s)
        runs = plan.allocations(snapshot.target)
        return Plan(plan.changes, snapshot.now_s + self.after_s if runs else inf)


class Wishing(Sleepy):
    """Fifo that says at given times when it wants to be asked again, and else that it does not."""

    def __init__(self, wishes):
        super().__init__(0.0)
        self.wishes = wishes

    def decide(self, snapshot):
        return Plan(super().decide(snapshot).changes, self.wishes.get(snapshot.now_s, inf))


def simulator(jobs, policy="fifo", gpus=1, **more):
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    return Simulator(uniform_cluster(1, gpus), jobs, chosen, **more)


def test_a_watcher_sees_every_decision_and_every_end():
    watcher = Watching()
    jobs = [Job("a", 0.0, 1, 10.0), Job("b", 4.0, 1, 5.0)]
    simulator(jobs, watcher=watcher).run()
    assert watcher.told == [(0.0, 1), (4.0, 2), "a", (10.0, 1), "b", (15.0, 0)]


def test_jobs_of_one_moment_are_decided_about_together():
    watcher = Watching()
    simulator([Job("a", 3.0, 1, 1.0), Job("b", 3.0, 1, 1.0)], gpus=2, watcher=watcher).run()
    assert watcher.told == [(3.0, 2), "a", "b", (4.0, 0)]


def test_progress_is_told_as_jobs_end():
    told = []
    simulator([Job("a", 0.0, 1, 10.0), Job("b", 4.0, 1, 5.0)], progress=told.append).run()
    assert told == [0, 0, 1, 2]


def test_a_wake_is_a_decision():
    policy = Sleepy(4.0)
    simulator([Job("a", 0.0, 1, 10.0)], policy).run()
    assert policy.asked == [0.0, 4.0, 8.0, 10.0]


def test_a_wake_that_was_replaced_does_not_come():
    policy = Sleepy(100.0)
    simulator([Job("a", 0.0, 1, 10.0), Job("b", 0.0, 1, 200.0)], policy).run()
    assert policy.asked == [0.0, 10.0, 110.0, 210.0]


@pytest.mark.parametrize(
    ("wishes", "asked"),
    [
        ({0.0: 50.0, 10.0: 60.0}, [0.0, 10.0, 60.0, 100.0]),  # by a later one
        ({0.0: 50.0, 10.0: 20.0}, [0.0, 10.0, 20.0, 100.0]),  # by an earlier one: 50 s does not come back
        ({0.0: 50.0, 10.0: inf}, [0.0, 10.0, 100.0]),  # by none at all
        ({0.0: 50.0, 10.0: 50.0}, [0.0, 10.0, 50.0, 100.0]),  # by the same: it comes once
        ({0.0: 10.0, 10.0: 50.0}, [0.0, 10.0, 50.0, 100.0]),  # it comes with an arrival: one decision
        ({0.0: 50.0, 10.0: 5.0}, [0.0, 10.0, 100.0]),  # by one that is over
        ({0.0: 50.0, 10.0: 50.0, 50.0: 50.0}, [0.0, 10.0, 50.0, 100.0]),  # now is not later
        ({0.0: 50.0, 10.0: 20.0, 20.0: 50.0}, [0.0, 10.0, 20.0, 50.0, 100.0]),  # wished for again
        ({0.0: 1e9}, [0.0, 10.0, 100.0]),  # after the end of all jobs
    ],
)
def test_only_the_latest_wish_to_be_asked_again_counts(wishes, asked):
    policy = Wishing(wishes)
    simulator([Job("a", 0.0, 1, 100.0), Job("b", 10.0, 1, 90.0)], policy, gpus=2).run()
    assert policy.asked == asked


class Later(Srtf):
    """Wants to be asked at 590 s, but thinks of it only when the second job has come."""

    def __init__(self):
        self.asked = []

    def wake_s(self, snapshot, changes):
        self.asked.append((snapshot.now_s, len(changes)))
        return 590.0 if 0 < snapshot.now_s < 590.0 else inf


def test_a_stage_is_asked_at_its_time_although_nothing_changes():
    """Nothing changes when `b` comes, which has to wait, and nothing changes at 590 s."""
    order = Later()
    simulator([Job("a", 0.0, 1, 1000.0), Job("b", 100.0, 1, 2000.0)], Policy("later", order=order)).run()
    assert order.asked == [(0.0, 1), (100.0, 0), (590.0, 0), (1000.0, 1), (3000.0, 0)]


def test_rounds_know_no_wakes():
    policy = Sleepy(4.0)
    simulator([Job("a", 0.0, 1, 10.0)], policy, rules=Rules(round_s=25.0)).run()
    assert policy.asked == [0.0]


def test_rounds_go_on_while_something_runs():
    policy = Sleepy(1.0)
    simulator([Job("a", 12.0, 1, 25.0)], policy, rules=Rules(round_s=10.0)).run()
    assert policy.asked == [20.0, 30.0, 40.0]


def test_rounds_pause_while_nobody_is_there():
    policy = Sleepy(1.0)
    jobs = [Job("a", 0.0, 1, 5.0), Job("b", 95.0, 1, 5.0)]
    simulator(jobs, policy, rules=Rules(round_s=10.0)).run()
    assert policy.asked == [0.0, 10.0, 100.0]


def test_rounds_that_are_no_whole_numbers():
    result = checked(uniform_cluster(1, 1), [Job("a", 0.65, 1, 1.0)], round_s=0.1)
    assert result.outcomes.start_s[0] == pytest.approx(0.7)
    exact = checked(uniform_cluster(1, 1), [Job("a", 0.7, 1, 1.0)], round_s=0.1)
    assert exact.outcomes.start_s.tolist() == [0.7]  # 0.7 / 0.1 is not quite 7


def test_jobs_may_come_in_any_order():
    jobs = [Job("b", 5.0, 1, 10.0), Job("a", 0.0, 1, 10.0)]
    assert finishes(checked(uniform_cluster(1, 1), jobs)) == {"a": 10.0, "b": 20.0}


def test_ties_keep_the_order_of_the_list():
    jobs = [Job(name, 1.0, 1, 10.0) for name in "cab"]
    assert finishes(checked(uniform_cluster(1, 1), jobs)) == {"c": 11.0, "a": 21.0, "b": 31.0}


def test_a_job_larger_than_the_cluster_is_told_so():
    words = "job a can never run by policy fifo, even alone: needs 9 GPUs; 1 is free; ask for less"
    with pytest.raises(InputError, match=words):
        simulator([Job("a", 0.0, 9, 1.0)]).run()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("", State.DONE),
        ("Pass", State.DONE),
        ("FAILED", State.FAILED),
        ("Timeout", State.FAILED),
        ("node_fail", State.FAILED),
        ("canceled", State.CANCELLED),
        ("Killed", State.CANCELLED),
    ],
)
def test_a_job_ends_as_its_trace_says(status, state):
    result = simulator([Job("a", 0.0, 1, 1.0, status=status)]).run()
    assert result.story_of("a")[-1].after is state


def test_known_statuses_are_in_small_letters():
    assert all(status == status.lower() for status in OUTCOMES)
    assert set(OUTCOMES.values()) == {State.FAILED, State.CANCELLED}


def test_stepping_by_hand_is_the_same_run():
    jobs = [Job("a", 0.0, 1, 10.0), Job("b", 2.0, 1, 5.0), Job("c", 50.0, 1, 1.0)]
    steps, seen = simulator(jobs, "srtf"), []
    while steps.advance():
        seen.append((steps.now_s, steps.arrived))
        steps.decide()
    assert seen == [(0.0, 1), (2.0, 2), (7.0, 2), (15.0, 2), (50.0, 3), (51.0, 3)]
    finish_s, arrival_s = steps.finishes()
    assert (finish_s.tolist(), arrival_s.tolist()) == ([7.0, 15.0, 51.0], [2.0, 0.0, 50.0])


def test_a_finish_that_a_failure_made_void_does_not_come():
    job = Job("a", 0.0, 1, 10.0, checkpoint_s=100.0)
    result = checked(uniform_cluster(1, 1), [job], failures=[Failure(9.0, "GPU-0", 0.5)])
    assert result.outcomes.finish_s.tolist() == [19.5]


def test_learned_policies_say_what_they_left_to_others():
    class Lazy(Policy):
        def decide(self, snapshot):
            plan = super().decide(snapshot)
            return Plan(plan.changes, notes={"fallback": "drf"} if snapshot.now_s < 5 else {})

    result = simulator([Job("a", 0.0, 1, 10.0), Job("b", 4.0, 1, 5.0)], Lazy("lazy")).run()
    assert result.left_to == {"drf": 2}
    assert result.summary()["fallback_share"] == 0.5
