"""One count of what the cluster has: nodes that are down are not there."""

from __future__ import annotations

import pytest

from trainyard.core.events import DecisionDue, JobSubmitted, NodeFailed, NodeRepaired
from trainyard.core.instructions import Start
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.state.capacity import up_by_type, up_capacity

NODES = (Node("a", "V100", 4, 8.0, 100.0), Node("b", "K80", 2, 24.0, 50.0))


def test_what_is_down_does_not_count():
    yard = Yard(Cluster("two", NODES), parse_policy("drf").decide)
    before = yard.snapshot(0.0).fork()
    assert up_capacity(before) == (6.0, 32.0, 150.0)
    yard.handle(NodeFailed(1.0, "b"))
    down = yard.snapshot(1.0).fork()
    assert up_capacity(down) == (4.0, 8.0, 100.0)
    assert up_by_type(down).tolist() == [4, 0]
    yard.handle(NodeRepaired(2.0, "b"))
    assert up_capacity(yard.snapshot(2.0)) == (6.0, 32.0, 150.0)
    assert (up_capacity(before)[0], up_capacity(down)[0]) == (6.0, 4.0)  # forks stay as they are


def test_parts_of_a_cluster_that_is_all_down_are_numbers():
    yard = Yard(Cluster("two", NODES), parse_policy("drf").decide)
    for node in NODES:
        yard.handle(NodeFailed(0.0, node.node_id))
    assert min(up_capacity(yard.snapshot(0.0))) > 0
    assert up_by_type(yard.snapshot(0.0)).tolist() == [0, 0]


@pytest.mark.parametrize("policy", ["drf", "optimus", "lookahead", "steepest"])
def test_cpus_of_a_node_that_is_down_are_not_given_out(policy):
    """Four CPUs with each GPU and eight in all: one GPU for both jobs, not two for the first."""
    yard = Yard(Cluster("two", NODES), parse_policy(policy).decide)
    yard.handle(NodeFailed(0.0, "b"))
    for name in ("x", "y"):
        job = Job(name, 0.0, 1, 1000.0, min_gpus=1, max_gpus=2, cpus=4.0)
        yard.handle(JobSubmitted(0.0, job))
    starts = [i for i in yard.handle(DecisionDue(0.0)) if isinstance(i, Start)]
    assert {start.job_id: start.allocation.gpus for start in starts} == {"x": 1, "y": 1}
