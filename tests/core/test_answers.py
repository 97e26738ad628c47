"""Plans and instructions as records of a log: plain data, and plans that are read again."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from policy_cases import nodes_of
from trainyard.core.answers import allocation_of, answer_record, plan_of, plan_record, shares_record
from trainyard.core.events import JobGone
from trainyard.core.instructions import (
    DecideAt,
    Ended,
    Fence,
    Ignored,
    Instruction,
    Kill,
    PlanRefused,
    Retune,
    Start,
    Stop,
)
from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.state.lifecycle import State

NODES = NodeTable(nodes_of(4, 4))
PLAIN = NODES.plain([(1, 2), (0, 1)])
SHARES = [["n1", 2, 0, 6.0, 120.0], ["n0", 1, 0, 3.0, 60.0]]
OWN = Allocation((Share("n0", 2, 0, 5.0, 120.0),))
GB = Allocation((Share("n0", 2, 0, 6.0, 12.5),))
SERVED = Allocation((Share("n0", 2, 1, 6.0, 120.0),))
RUN = {"job_id": "a", "allocation": SHARES, "samples_per_s": 3.0, "finish_s": 50.0}


def through_a_file(record):
    return json.loads(json.dumps(record, allow_nan=False))


@pytest.mark.parametrize("allocation", [PLAIN, OWN, GB, SERVED])
def test_an_allocation_is_read_again(allocation):
    back = allocation_of(through_a_file(shares_record(allocation)), NODES)
    assert back == allocation
    assert back.plain == allocation.plain  # only of GPUs that come with their node's share
    assert all(isinstance(share, Share) for share in back.shares)


INSTRUCTIONS = [
    (
        Start("a", PLAIN, 3.0, 50.0, 2.0, 4, {"n1": (0, 3)}),
        {"do": "Start", **RUN, "lr_factor": 2.0, "attempt": 4, "gpus": {"n1": [0, 3]}},
    ),
    (Retune("a", PLAIN, 3.0, 50.0, 4), {"do": "Retune", **RUN, "attempt": 4}),
    (Stop("a", 4, 2.0), {"do": "Stop", "job_id": "a", "attempt": 4, "patience": 2.0}),
    (Kill("a", 4), {"do": "Kill", "job_id": "a", "attempt": 4}),
    (Fence("n0"), {"do": "Fence", "node": "n0"}),
    (Ignored(JobGone(1.0, "a"), "it is late"), {"do": "Ignored", "why": "it is late"}),
    (PlanRefused("no room"), {"do": "PlanRefused", "why": "no room"}),
    (DecideAt(7.0), {"do": "DecideAt", "time_s": 7.0}),
    (DecideAt(inf), {"do": "DecideAt", "time_s": "inf"}),
    (
        Ended(Job("a", 0.0, 1, 5.0), State.FAILED, 9.0, None, 5.0, 5.0, 0.0, 0, 0),
        {"do": "Ended", "job_id": "a", "state": "failed", "finish_s": 9.0},
    ),
]


@pytest.mark.parametrize(("instruction", "record"), INSTRUCTIONS, ids=lambda it: type(it).__name__)
def test_an_instruction_as_plain_data(instruction, record):
    assert through_a_file(answer_record(instruction)) == record


def test_every_type_of_instruction_is_tried():
    assert {type(instruction) for instruction, _ in INSTRUCTIONS} == set(Instruction.__args__)


@pytest.mark.parametrize("wake_s", [12.5, inf])
def test_a_plan_is_read_again(wake_s):
    plan = Plan({"a": PLAIN, "b": None, "c": OWN}, wake_s, {"rescued": ["a"], "gap": inf, "by": {"x": nan}})
    record = through_a_file(plan_record(plan))
    assert record["changes"] == {"a": SHARES, "b": None, "c": [["n0", 2, 0, 5.0, 120.0]]}
    back = plan_of(record, NODES)
    assert (back.changes, back.wake_s) == (plan.changes, wake_s)
    assert back.changes["a"].plain == PLAIN.plain
    assert back.notes == {"rescued": ["a"], "by": {}}  # numbers that no file can hold are left out


def test_where_there_was_no_plan_the_error_comes_again():
    with pytest.raises(PlanError, match="it fell over"):
        plan_of({"error": "it fell over"}, NODES)
