"""Densest packing against filling the nodes one GPU at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.cluster import Node
from trainyard.model.speed.packing import Packing

nodes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 9), st.integers(1, 99), st.integers(1, 40)), max_size=5
).map(
    lambda rows: [Node(f"n{i}", "V100", g, c, m, net, 100.0, 500.0) for i, (g, c, m, net) in enumerate(rows)]
)


def one_by_one(nodes, gpus):
    """What some GPUs take: nodes, CPUs, GB, MB/s, and the slowest network."""
    order = sorted((n for n in nodes if n.gpus), key=lambda n: -n.gpus)
    slots = [node for node in order for _ in range(node.gpus)][:gpus]
    used = {node.node_id: node for node in slots}
    sums = [sum(getattr(n, name) / n.gpus for n in slots) for name in ("cpus", "memory_gb", "storage_mbps")]
    return (len(used), *sums, min((n.network_gbps for n in used.values()), default=math.inf))


@given(nodes)
def test_packing_fills_the_largest_nodes_first(nodes):
    total = sum(n.gpus for n in nodes)
    counts = np.arange(total + 1)
    packed = Packing(nodes).of(counts)
    for gpus in counts.tolist():
        found = [float(column[gpus]) for column in packed[:5]]
        assert found == pytest.approx(one_by_one(nodes, gpus))


def test_more_gpus_than_there_are_go_on_as_on_the_last_node():
    few = [Node("a", "V100", 4, 12, 100, 10, 100, 500), Node("b", "V100", 2, 8, 50, 5, 90, 400)]
    packed = Packing(few).of(np.array([6, 7, 8, 9]))
    assert packed.nodes.tolist() == [2, 3, 3, 4]
    assert packed.cpus.tolist() == [20.0, 24.0, 28.0, 32.0]
    assert packed.memory_gb.tolist() == [150.0, 175.0, 200.0, 225.0]
    assert packed.storage_mbps.tolist() == [900.0, 1100.0, 1300.0, 1500.0]
    assert packed.network_gbps.tolist() == [5.0] * 4


def test_inside_a_node_the_first_one_counts():
    few = [Node("small", "V100", 2, 8, 50, intra_gbps=50), Node("large", "V100", 4, 12, 100, intra_gbps=90)]
    assert Packing(few).of(np.array([0, 1, 5])).intra_gbps.tolist() == [90.0] * 3


def test_no_gpus_at_all():
    packed = Packing([Node("cpu", "CPU", 0, 64, 512)]).of(np.array([0, 0]))
    assert packed.nodes.tolist() == [0, 0]
    assert packed.cpus.tolist() == packed.memory_gb.tolist() == packed.storage_mbps.tolist() == [0.0, 0.0]
    assert packed.network_gbps.tolist() == packed.intra_gbps.tolist() == [math.inf] * 2
