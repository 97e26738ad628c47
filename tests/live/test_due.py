"""When the policy is asked: after every event that matters, at rounds, and again after a crash."""

from __future__ import annotations

from math import inf

import pytest

from live_cases import controller_of, hand_in
from trainyard.core.events import DecisionsPaused, JobFinished
from trainyard.live.clock import SetClock
from trainyard.policy.grammar import parse_policy


def decide(controller):
    assert controller.due_at() <= controller.clock.now()
    controller.decide()
    controller.commit()


def test_a_submission_asks_for_a_decision_and_that_for_no_other(tmp_path):
    with controller_of(tmp_path / "store", SetClock(7.0)) as (controller, _):
        assert controller.due_at() == inf
        hand_in(controller, "a")
        assert controller.due_at() == 7.0
        decide(controller)
        assert controller.due_at() == inf
        assert [intent.kind for intent in controller.sent] == ["start"]


def test_rounds_are_kept_although_the_clock_passes_over_them(tmp_path):
    clock = SetClock(61.0)
    with controller_of(tmp_path / "store", clock, round_s=60.0) as (controller, _):
        hand_in(controller, "a")
        assert controller.due_at() == 120.0
        clock.now_s = 119.5
        assert controller.due_at() == 120.0
        clock.now_s = 120.25  # nobody wakes up to the microsecond
        decide(controller)
        assert controller.due_at() == 180.0  # it runs: every round decides
        clock.now_s = 181.0
        controller.tell(JobFinished(181.0, "a", attempt=1))
        clock.now_s = 240.0
        decide(controller)
        assert controller.due_at() == inf  # nothing is there to decide about


def test_a_round_that_is_no_exact_number_is_not_missed(tmp_path):
    clock = SetClock(3 * 0.1)  # a little more than 0.3
    with controller_of(tmp_path / "store", clock, round_s=0.1) as (controller, _):
        hand_in(controller, "a")
        assert controller.due_at() == 3 * 0.1


def test_nothing_is_due_while_decisions_are_paused(tmp_path):
    with controller_of(tmp_path / "store") as (controller, _):
        hand_in(controller, "a")
        controller.tell(DecisionsPaused(0.0))
        assert controller.due_at() == inf


class Fails:
    """A policy with a defect that shows at its second decision."""

    def __init__(self):
        self.whole, self.times = parse_policy("las"), 0
        self.name, self.order = "las", self.whole.order

    def decide(self, view):
        self.times += 1
        if self.times == 2:
            raise ZeroDivisionError("of its own")
        return self.whole.decide(view)._replace(wake_s=view.now_s + 5.0)


@pytest.mark.parametrize("round_s", [None, 5.0])
def test_a_policy_that_fails_when_it_wanted_to_be_asked_is_not_asked_all_the_time(tmp_path, round_s, spoilt):
    clock, policy = SetClock(0.0), Fails()
    spoilt.add(f"sqlite:///{tmp_path / 'store'}")  # no policy decides like this one
    with controller_of(tmp_path / "store", clock, round_s=round_s) as (controller, _):
        controller.decider._find = lambda name: policy
        controller.yard.decider = controller.decider.policy("las").decide
        hand_in(controller, "a")
        decide(controller)
        clock.now_s = 5.0
        decide(controller)
        assert controller.published.refusals == 1
        assert controller.due_at() == (inf if round_s is None else 10.0)
        hand_in(controller, "b")
        clock.now_s = controller.due_at()
        decide(controller)
        assert policy.times == 3


@pytest.mark.parametrize("decided", [False, True])
def test_a_decision_that_was_owed_when_the_controller_died_is_taken_by_the_next_one(tmp_path, decided):
    clock = SetClock(5.0)
    with controller_of(tmp_path / "store", clock) as (controller, _):
        hand_in(controller, "a")
        if decided:
            decide(controller)
    clock.now_s = 9.0
    with controller_of(tmp_path / "store", clock) as (controller, _):
        assert controller.due_at() == (inf if decided else 5.0)
        if not decided:
            decide(controller)
            assert [intent.key for intent in controller.sent] == [("a", 1)]


def test_rounds_go_on_after_a_crash(tmp_path):
    clock = SetClock(0.0)
    with controller_of(tmp_path / "store", clock, round_s=60.0) as (controller, _):
        hand_in(controller, "a")
        decide(controller)
    clock.now_s = 30.0
    with controller_of(tmp_path / "store", clock, round_s=60.0) as (controller, _):
        assert controller.due_at() == 60.0
