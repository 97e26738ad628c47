"""Clusters as objects and as arrays."""

from __future__ import annotations

import copy
import pickle

import pytest

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node, NodeTable, by_speed, uniform_cluster

MIXED = Cluster(
    "mixed",
    (
        Node("v0", "V100", 4, 12, 250),
        Node("p0", "P100", 2, 16, 128),
        Node("v1", "V100", 8, 12, 500),
        Node("cpu", "CPU", 0, 64, 512),
        Node("v2", "V100", 4, 12, 250),
    ),
    {"P100": GpuType("P100", 0.5), "K80": GpuType("K80", 0.1)},
)
TABLE = NodeTable(MIXED)


def test_a_uniform_cluster_has_the_default_share_for_each_gpu():
    cluster = uniform_cluster(2, 4, "V100", "lab")
    assert cluster == Cluster(
        "lab", tuple(Node(f"V100-{i}", "V100", 4, 12.0, 250.0, 10.0, 100.0, 500.0) for i in range(2))
    )
    assert cluster.gpus == 8
    assert uniform_cluster(3).gpus == 24


def test_speeds_of_types():
    assert [MIXED.speed_of(t) for t in ("V100", "P100", "K80", "unheard of")] == [1.0, 0.5, 0.1, 1.0]
    assert MIXED.gpus == 18


def test_types_are_in_the_order_of_the_nodes():
    assert TABLE.types == ["V100", "P100", "CPU"]
    assert TABLE.type_index == {"V100": 0, "P100": 1, "CPU": 2}
    assert TABLE.type.tolist() == TABLE.type_of == [0, 1, 0, 2, 0]
    assert TABLE.speeds.tolist() == [1.0, 0.5, 1.0]
    assert TABLE.gpus_of_type.tolist() == [16, 2, 0]
    assert TABLE.mask_of_type == [0b10101, 0b00010, 0b01000]


def test_columns_are_those_of_the_nodes():
    assert TABLE.ids == ["v0", "p0", "v1", "cpu", "v2"]
    assert [TABLE.index[node] for node in TABLE.ids] == [0, 1, 2, 3, 4]
    assert TABLE.gpus.tolist() == [4, 2, 8, 0, 4]
    assert TABLE.cpus.tolist() == [12, 16, 12, 64, 12]
    assert TABLE.memory_gb.tolist() == [250, 128, 500, 512, 250]


def test_nodes_that_differ_in_their_names_only_are_of_one_kind():
    assert TABLE.kind.tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(
    "other",
    [
        Node("x", "P100", 4, 12, 250),
        Node("x", "V100", 5, 12, 250),
        Node("x", "V100", 4, 13, 250),
        Node("x", "V100", 4, 12, 251),
        Node("x", "V100", 4, 12, 250, network_gbps=11),
        Node("x", "V100", 4, 12, 250, storage_mbps=501),
    ],
)
def test_any_difference_makes_another_kind(other):
    table = NodeTable(Cluster("two", (Node("v0", "V100", 4, 12, 250), other)))
    assert table.kind.tolist() == [0, 1]


def test_the_share_that_goes_with_a_gpu():
    assert TABLE.cpus_per_gpu.tolist() == [3.0, 8.0, 1.5, 64.0, 3.0]
    assert TABLE.memory_per_gpu.tolist() == [62.5, 64.0, 62.5, 512.0, 62.5]
    assert TABLE.share_per_gpu[2] == (1.5, 62.5)


def test_a_proportional_allocation_is_made_once():
    three = TABLE.proportional[2, 3]
    assert three == Allocation((Share("v1", 3, 0, 4.5, 187.5),))
    assert TABLE.proportional[2, 3] is three
    assert TABLE.proportional[0, 3] == Allocation((Share("v0", 3, 0, 9.0, 187.5),))


def test_workers_by_type():
    shares = (
        Share("v0", 2, 0, 0, 0),
        Share("v1", 1, 0, 0, 0),
        Share("p0", 2, 0, 0, 0),
        Share("cpu", 0, 3, 0, 0),
    )
    assert TABLE.workers_by_type(Allocation(shares)) == [3, 2, 0]


def test_the_fastest_type_is_first_and_ties_keep_their_order():
    assert by_speed(TABLE) == [0, 2, 1]
    slow_first = Cluster("two", (Node("a", "P100", 1, 1, 1), Node("b", "V100", 1, 1, 1)), MIXED.gpu_types)
    assert by_speed(NodeTable(slow_first)) == [1, 0]


def test_what_an_allocation_holds_in_all():
    two = Allocation((Share("v0", 2, 1, 3, 10), Share("v1", 3, 2, 4, 20)))
    assert (two.gpus, two.servers) == (5, 3)
    assert two.workers == (("v0", 2), ("v1", 3))
    assert two.seats == (("v0", 2, 1), ("v1", 3, 2))
    one = Allocation((Share("v0", 2, 1, 3, 10),))
    assert (one.gpus, one.servers, one.workers, one.seats) == (2, 1, (("v0", 2),), (("v0", 2, 1),))
    assert (Allocation(()).gpus, Allocation(()).workers) == (0, ())


def test_other_cpus_are_another_allocation_in_the_same_seats():
    one, other = Allocation((Share("v0", 2, 1, 3, 10),)), Allocation((Share("v0", 2, 1, 4, 10),))
    assert one != other
    assert one.seats == other.seats
    assert one == Allocation((Share("v0", 2, 1, 3.0, 10.0),))


def test_plain_shares_of_nodes_say_what_they_take_by_index():
    one, two = TABLE.plain([(2, 3)]), TABLE.plain([(2, 3), (0, 1)])
    assert one is TABLE.proportional[2, 3]
    assert two.shares == (Share("v1", 3, 0, 4.5, 187.5), Share("v0", 1, 0, 3.0, 62.5))
    assert two.plain == ((2, 3, 4.5, 187.5), (0, 1, 3.0, 62.5))
    for plain in (one, two):
        assert TABLE.parts(Allocation(plain.shares)) == list(plain.plain)
        assert TABLE.is_proportional(plain)
    assert not TABLE.is_proportional(Allocation((Share("v1", 3, 0, 4.0, 187.5),)))


def test_an_allocation_can_be_copied_and_pickled():
    two = TABLE.plain([(2, 3), (0, 1)])
    for twin in (pickle.loads(pickle.dumps(two)), copy.copy(two), copy.deepcopy(two)):
        assert (twin, twin.gpus, twin.plain) == (two, 4, two.plain)
