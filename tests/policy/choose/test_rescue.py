"""Who runs where nothing would, and what a plan says of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import APART
from policy_cases import nodes_of, snapshot_of, yard_of
from trainyard.core.events import NodeFailed, NodeRepaired
from trainyard.model.allocation import Share
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.tenant import Tenant
from trainyard.policy.choose.rescue import leaves_nobody
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.policy.tune.proportional import proportional_request


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


def rescued(cluster, *jobs, held=None):
    """What runs where no size stage wants anybody to."""
    plan = Policy(size=Unwilling()).decide(snapshot_of(cluster, jobs, held))
    return {name: a for name, a in plan.changes.items() if a is not None}


@pytest.mark.parametrize(
    ("free", "sizes", "gpus"),
    [(8, (), 4), (4, (), 4), (3, (), 3), (2, (), 2), (1, (), None), (3, (2, 4, 6), 2), (5, (2, 6), 2)],
)
def test_as_near_to_what_it_asked_for_as_there_is_room(free, sizes, gpus):
    elastic = job("a", 4 if 4 in sizes or not sizes else 6, min_gpus=2, max_gpus=8, sizes=sizes)
    found = rescued(nodes_of(free), elastic)
    assert {name: a.gpus for name, a in found.items()} == ({} if gpus is None else {"a": gpus})


@pytest.mark.parametrize(("limit", "gpus"), [(None, 4), (4, 4), (3, 3), (2, 2)])
def test_no_more_than_its_tenant_may_have(limit, gpus):
    cluster = replace(nodes_of(8), tenants={"red": Tenant("red", limit=limit)})
    found = rescued(cluster, job("a", 4, min_gpus=2, max_gpus=8, tenant="red"))
    assert found["a"].gpus == gpus


def test_the_server_may_sit_alone_where_nothing_else_fits():
    nodes = (Node("n0", "V100", 2, 2.0, 16.0), Node("n1", "V100", 1, 0.5, 4.0))
    served = Job("a", 0.0, 2, samples=1e6, profile=APART)
    found = rescued(Cluster("poor", nodes), served)
    assert found["a"].shares == (Share("n0", 2, 0, 2.0, 16.0), Share("n1", 0, 1, 0.5, 4.0))


def test_fewer_servers_rather_than_none():
    nodes = (Node("n0", "V100", 4, 5.0, 400.0),)  # four workers take 4 CPUs, a server half of one
    found = rescued(Cluster("poor", nodes), Job("a", 0.0, 4, samples=1e6, profile=APART))
    assert (found["a"].gpus, found["a"].servers) == (4, 2)


def test_a_draft_leaves_nobody_if_all_that_runs_stops_and_nothing_starts():
    view = snapshot_of(nodes_of(4), [job("a", 1), job("b", 1), job("c", 1)], {"a": {"n0": 1}, "b": {"n0": 1}})
    draft = Draft(view)
    assert not leaves_nobody(draft)
    draft.release("a")
    assert not leaves_nobody(draft)
    draft.release("b")
    assert leaves_nobody(draft)
    draft.commit(proportional_request(job("c", 1), 1, -1), view.nodes.plain([(0, 1)]))
    assert not leaves_nobody(draft)
    draft.close()
    assert leaves_nobody(Draft(snapshot_of(nodes_of(4), [job("a", 1)])))
