"""Asking a policy and writing down what it said; or saying what was written down."""

from __future__ import annotations

import json

import pytest

from profile_cases import PROFILES
from trainyard.core.answers import plan_of
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.instructions import PlanRefused, Start
from trainyard.core.yard import Yard
from trainyard.errors import InputError, PlanError
from trainyard.live.deciding import Decider
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy

CLUSTER = uniform_cluster(2, 4)
POLICIES = ("fifo", "easy", "las", "srtf", "srtf+doubling", "srtf+tune", "srtf+steepest+tune", "market")


def yard_by(decider, name):
    yard = Yard(CLUSTER, decider.policy(name).decide, indices=True, policies=decider.policy)
    for n, profile in enumerate((None, *PROFILES[:2], None)):
        job = Job(f"j{n}", 0.0, 2, 500.0 + n, min_gpus=1, max_gpus=4, profile=profile)
        yard.handle(JobSubmitted(0.0, job))
    return yard


@pytest.mark.parametrize("name", POLICIES)
def test_a_plan_that_is_dictated_leads_where_the_policy_led(name):
    decider = Decider()
    first = yard_by(decider, name)
    said = first.handle(DecisionDue(1.0))
    assert decider.took_ms > 0
    written = json.dumps(decider.last)
    again = Decider()
    second = yard_by(again, name)
    again.dictated = json.loads(written)
    assert second.handle(DecisionDue(1.0)) == said
    assert json.dumps(again.last) == written
    assert again.dictated is None  # it holds once
    assert second.target == first.target


def test_a_plan_is_dictated_although_the_policy_would_decide_otherwise():
    decider = Decider()
    yard = yard_by(decider, "fifo")
    decider.dictated = {"changes": {"j3": [["GPU-1", 1, 0, 3.0, 62.5]]}, "wake_s": "inf", "notes": {}}
    (start,) = [each for each in yard.handle(DecisionDue(1.0)) if isinstance(each, Start)]
    assert (start.job_id, start.allocation.gpus) == ("j3", 1)


class Raises:
    """A policy with a defect, or one that says what is wrong."""

    def __init__(self, error):
        self.whole, self.error = parse_policy("fifo"), error
        self.name, self.order = "broken", self.whole.order

    def decide(self, view):
        raise self.error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ZeroDivisionError("division by zero"), "policy broken failed: ZeroDivisionError: division by zero"),
        (PlanError("no room"), "no room"),
    ],
)
def test_a_policy_that_fails_is_refused_and_that_is_written_down(error, text):
    decider = Decider(lambda name: Raises(error))
    yard = yard_by(decider, "broken")
    assert yard.handle(DecisionDue(1.0)) == [PlanRefused(text)]
    assert decider.last == {"error": text}
    with pytest.raises(PlanError, match="^" + text.partition(":")[0]):
        plan_of(decider.last, yard.nodes)
    again = Decider()
    other = yard_by(again, "fifo")
    again.dictated = decider.last
    assert other.handle(DecisionDue(1.0)) == [PlanRefused(text)]
    assert other.target == {}


def test_a_policy_that_is_not_known_is_said_to_be():
    with pytest.raises(InputError, match="fifoo"):
        Decider().policy("fifoo")


def test_what_is_recorded_keeps_the_name_and_the_order():
    recorded, plain = Decider().policy("las+tune"), parse_policy("las+tune")
    assert recorded.name == plain.name
    assert type(recorded.order) is type(plain.order)
