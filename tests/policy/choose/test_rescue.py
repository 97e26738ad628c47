"""Who runs where nothing would, and what a plan says of it."""

from __future__ import annotations

import numpy as np

from policy_cases import nodes_of, snapshot_of, yard_of
from trainyard.core.events import NodeFailed, NodeRepaired
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Chosen, Shapes, Size


def job(name, gpus, **more):
    return Job(name, 0.0, gpus, duration_s=100.0, **more)


class Unwilling(Size):
    """Gives nobody anything."""

    def shapes(self, snapshot, ranked):
        return Chosen(Shapes(np.zeros_like(ranked)), {"said": "no"})


def test_the_first_that_fits_starts_and_the_plan_says_so():
    plan = Policy(size=Unwilling()).decide(snapshot_of(nodes_of(4), [job("a", 9), job("b", 2), job("c", 1)]))
    assert {name: a.gpus for name, a in plan.changes.items()} == {"b": 2}
    assert plan.notes == {"said": "no", "rescued": ["b"]}


def test_what_runs_goes_on_rather_than_nothing():
    busy = snapshot_of(nodes_of(4), [job("a", 1), job("b", 2)], {"b": {"n0": 2}})
    plan = Policy(order=Srtf(), size=Unwilling()).decide(busy)
    assert dict(plan.changes) == {}
    assert plan.notes["rescued"] == ["b"]


def test_nobody_is_rescued_while_anything_runs():
    plan = parse_policy("fifo").decide(snapshot_of(nodes_of(4), [job("a", 1), job("b", 9)], {"a": {"n0": 1}}))
    assert (dict(plan.changes), dict(plan.notes)) == ({}, {})


def test_nobody_passes_a_gang_that_waits_for_its_nodes_to_come_back():
    yard = yard_of(nodes_of(4, 4), [job("head", 8, min_gpus=2, max_gpus=8), job("b", 1)])
    yard.handle(NodeFailed(1.0, "n1"))
    plan = parse_policy("fifo").decide(yard.snapshot(2.0).fork())
    assert dict(plan.changes) == {}
    assert set(parse_policy("fifo(fill=greedy)").decide(yard.snapshot(2.0)).changes) == {"b"}
    yard.handle(NodeRepaired(3.0, "n1"))
    assert parse_policy("fifo").decide(yard.snapshot(4.0)).changes["head"].gpus == 8
