"""Where a gang fits: usable GPUs, types in turn, shares, one node for all, settled mixes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_cases import TYPES, nodes_of, two_types
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, Node, NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.policy.place.fit import (
    allocate,
    by_type,
    one_node,
    usable_gpus,
    worker_shares,
)
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.servers import MANY, portions
from trainyard.policy.registry import ENTRIES
from trainyard.policy.request import Request
from trainyard.state.room import Room, counts_of

JOB = Job("a", 0.0, 1, duration_s=1.0)


def room_of(cluster):
    nodes = NodeTable(cluster)
    return nodes, Room.all_of(nodes)


def special(*free):
    """Nodes of 4 GPUs, 12 CPUs and 240 GB each, with (GPUs, CPUs, GB) free."""
    nodes = NodeTable(nodes_of(*[4] * len(free)))
    room = Room(*(list(column) for column in zip(*free, strict=True)))
    room.plain = False
    return nodes, room


def test_free_gpus_are_usable_where_only_proportional_shares_are_out():
    nodes, free = room_of(nodes_of(4, 2))
    assert counts_of(usable_gpus(Request(JOB, 1), free, nodes)) == {0: 4, 1: 2}


def test_where_jobs_took_more_their_cpus_are_missing():
    nodes, free = special((4, 6.0, 240.0), (4, 12.0, 119.0), (1, 12.0, 240.0), (4, 2.9, 240.0))
    assert counts_of(usable_gpus(Request(JOB, 1), free, nodes)) == {0: 2, 1: 1, 2: 1}


def test_who_asks_for_cpus_or_memory_can_use_as_many_gpus_as_these_are_for():
    nodes, free = room_of(nodes_of(4, 2))
    assert counts_of(usable_gpus(Request(JOB, 1, -1, 5.0), free, nodes)) == {0: 2, 1: 1}
    assert counts_of(usable_gpus(Request(JOB, 1, -1, None, 120.0), free, nodes)) == {0: 2, 1: 1}
    assert counts_of(usable_gpus(Request(JOB, 1, -1, 0.0, 0.0), free, nodes)) == {0: 4, 1: 2}
    assert counts_of(usable_gpus(Request(JOB, 1, -1, 6.0), free, nodes)) == {0: 2, 1: 1}
    assert counts_of(usable_gpus(Request(JOB, 1, -1, 6.001), free, nodes)) == {0: 1}


def test_portions():
    assert portions([6.0, 3.0], 2.0).tolist() == pytest.approx([3.0, 1.5])
    assert portions([6.0, 0.0], 0.0).tolist() == [MANY, MANY]


def test_types_in_turn_the_fastest_first_and_only_those_with_room_for_all():
    nodes, free = room_of(two_types(v100=2, k80=4))
    turns = [counts_of(usable) for usable in by_type(Request(JOB, 2), free, nodes)]
    assert turns == [{1: 2}, {0: 4}]
    assert [counts_of(usable) for usable in by_type(Request(JOB, 3), free, nodes)] == [{0: 4}]
    assert [counts_of(usable) for usable in by_type(Request(JOB, 2, 0), free, nodes)] == [{0: 4}]
    assert by_type(Request(JOB, 3, 1), free, nodes) == []


def test_types_are_mixed_only_if_none_could_ever_hold_the_gang():
    nodes, free = room_of(two_types(v100=2, k80=4))
    assert [counts_of(usable) for usable in by_type(Request(JOB, 5), free, nodes)] == [{0: 4, 1: 2}]
    free.add(0, -3, -9.0, -180.0)
    assert by_type(Request(JOB, 4), free, nodes) == []  # four K80s will be free again


def test_workers_take_the_share_of_their_node_or_their_own():
    nodes, _ = room_of(Cluster("c", (Node("x", "GPU", 4, 8.0, 40.0), Node("y", "GPU", 2, 10.0, 200.0))))
    parts = [(0, 3), (1, 1)]
    assert worker_shares(Request(JOB, 4), parts, nodes) == [
        Share("x", 3, 0, 6.0, 30.0),
        Share("y", 1, 0, 5.0, 100.0),
    ]
    assert worker_shares(Request(JOB, 4, -1, 1.5, None), parts, nodes) == [
        Share("x", 3, 0, 4.5, 30.0),
        Share("y", 1, 0, 1.5, 100.0),
    ]
    assert worker_shares(Request(JOB, 4, -1, None, 7.0), parts, nodes)[0] == Share("x", 3, 0, 6.0, 21.0)


def test_an_allocation_on_one_node_is_made_once():
    nodes, free = room_of(nodes_of(4))
    first, again = (allocate(Request(JOB, 2), [(0, 2)], free, nodes) for _ in range(2))
    assert first is again
    assert first.shares == (Share("n0", 2, 0, 6.0, 120.0),)
    assert allocate(Request(JOB, 2, -1, 1.0), [(0, 2)], free, nodes).shares[0].cpus == 2.0


# -- workers and servers on one node ----------------------------------------------------------------------


def served(gpus, servers=1, gpu_type=-1, worker=(1.0, 10.0), server=(2.0, 20.0)):
    return Request(JOB, gpus, gpu_type, *worker, servers, Demand(*server))


def test_one_node_for_all_is_the_fullest_with_room():
    nodes, free = special((4, 12.0, 240.0), (2, 12.0, 240.0), (3, 12.0, 240.0), (1, 12.0, 240.0))
    (share,) = one_node(served(2), free, nodes)
    assert share == Share("n1", 2, 1, 2 * 1.0 + 2.0, 2 * 10.0 + 20.0)
    (share,) = one_node(served(2, servers=3, worker=(1.5, 10.0)), free, nodes)
    assert share == Share("n1", 2, 3, 2 * 1.5 + 3 * 2.0, 2 * 10.0 + 3 * 20.0)


@pytest.mark.parametrize(
    ("cpus", "memory_gb", "node"),
    [(4.0, 40.0, "n0"), (3.9, 40.0, "n1"), (4.0, 39.9, "n1"), (12.0, 240.0, "n0")],
)
def test_one_node_must_have_cpus_and_memory_for_workers_and_servers(cpus, memory_gb, node):
    nodes, free = special((2, cpus, memory_gb), (4, 12.0, 240.0))
    assert one_node(served(2), free, nodes)[0].node == node


def test_no_node_has_room_for_all():
    nodes, free = special((4, 12.0, 240.0), (4, 12.0, 240.0))
    assert one_node(served(5), free, nodes) is None
    assert one_node(served(4, servers=4), free, nodes)[0].cpus == 12.0
    assert one_node(served(4, servers=5), free, nodes) is None
    assert one_node(served(1, servers=1, server=(0.0, 231.0)), free, nodes) is None
    assert one_node(served(1, servers=1, server=(0.0, 230.0)), free, nodes) is not None


def test_one_node_is_looked_for_only_if_all_demands_are_known():
    nodes, free = special((4, 12.0, 240.0))
    assert one_node(served(1)._replace(server=None), free, nodes) is None
    assert one_node(served(1)._replace(cpus_per_gpu=None), free, nodes) is None
    assert one_node(served(1)._replace(memory_per_gpu=None), free, nodes) is None


def test_one_node_of_the_fastest_type_that_the_job_may_use():
    nodes, free = room_of(two_types(v100=4, k80=2))
    assert one_node(served(2), free, nodes)[0].node == "v"
    assert one_node(served(2, gpu_type=0), free, nodes)[0].node == "k"


# -- settled mixes ----------------------------------------------------------------------------------------


def mixed_nodes():
    made = [("k0", "K80", 2), ("v0", "V100", 2), ("v1", "V100", 4), ("k1", "K80", 4)]
    return room_of(Cluster("m", tuple(Node(n, t, g, 3.0 * g, 60.0 * g) for n, t, g in made), TYPES))


@pytest.mark.parametrize(
    ("mix", "seats"),
    [
        ((0, 3), {"v1": 3}),
        ((2, 2), {"k0": 2, "v0": 2}),
        ((5, 0), {"k1": 4, "k0": 1}),
        ((6, 6), {"k1": 4, "k0": 2, "v1": 4, "v0": 2}),
        ((7, 0), None),
        ((1, 7), None),
    ],
)
def test_the_workers_of_each_type_go_on_the_fewest_nodes(mix, seats):
    nodes, free = mixed_nodes()
    found = Pack().find_by_type(Request(JOB, sum(mix), by_type=mix), free, nodes, 0)
    assert (None if found is None else dict(found.workers)) == seats


def test_all_of_a_type_wait_rather_than_span_more_nodes_than_necessary():
    nodes, free = mixed_nodes()
    free.take(nodes, Allocation((Share("k1", 3, 0, 9.0, 180.0),)))
    asked = Request(JOB, 4, by_type=(2, 2))
    assert dict(Pack("require").find_by_type(asked, free, nodes, 0).workers) == {"k0": 2, "v0": 2}
    free.take(nodes, Allocation((Share("k0", 1, 0, 3.0, 60.0),)))
    assert Pack("require").find_by_type(asked, free, nodes, 0) is None
    assert dict(Pack().find_by_type(asked, free, nodes, 0).workers) == {"k0": 1, "k1": 1, "v0": 2}


PLACES = [name for name, entry in ENTRIES.items() if entry.stages == ("place",)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("servers", [0, 3])
@pytest.mark.parametrize("mix", [(0, 3), (2, 2), (5, 0), (6, 6), (3, 1), (7, 0), (1, 7)])
def test_every_place_stage_gives_settled_types_what_was_settled(place, servers, mix):
    nodes, free = mixed_nodes()
    left = free.gpus.copy()
    own = {"servers": servers, "server": Demand(0.5, 5.0)} if servers else {}
    asked = Request(JOB, sum(mix), by_type=mix, cpus_per_gpu=1.0, memory_per_gpu=10.0, **own)
    found = ENTRIES[place].make().find_by_type(asked, free, nodes, 1)
    if max(mix) > 6:
        assert found is None
        return
    assert tuple(nodes.workers_by_type(found)) == mix
    assert found.servers == servers
    assert len({share.node for share in found.shares}) == len(found.shares)
    assert free.gpus == left  # only found, not taken
    free.take(nodes, found)
    assert min(free.gpus + free.cpus + free.memory_gb) >= 0


def test_spreading_and_packing_settled_types_differ():
    nodes, free = mixed_nodes()
    asked = Request(JOB, 4, by_type=(2, 2))
    assert dict(Pack().find_by_type(asked, free, nodes, 0).workers) == {"k0": 2, "v0": 2}
    spread = ENTRIES["spread"].make().find_by_type(asked, free, nodes, 0)
    assert dict(spread.workers) == {"k1": 2, "v1": 2}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 12), st.floats(0, 240)), min_size=1, max_size=4),
    st.one_of(st.none(), st.floats(0.5, 6.0)),
    st.one_of(st.none(), st.floats(5.0, 200.0)),
)
def test_usable_gpus_are_as_many_as_could_be_taken_one_by_one(free, cpus, memory_gb):
    nodes, room = special(*free)
    usable = counts_of(usable_gpus(Request(JOB, 1, -1, cpus, memory_gb), room, nodes))
    for i, (gpus, cpus_left, gb_left) in enumerate(free):
        count = 0
        while (
            count < gpus
            and (count + 1) * (3.0 if cpus is None else cpus) <= cpus_left + 1e-6
            and (count + 1) * (60.0 if memory_gb is None else memory_gb) <= gb_left + 1e-6
        ):
            count += 1
        assert usable.get(i, 0) == count
