"""Seats of parameter servers by hand: on which nodes, how many, and with how much."""

from __future__ import annotations

import pytest

from policy_cases import nodes_of
from trainyard.model.allocation import Share
from trainyard.model.cluster import Cluster, Node, NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.policy.place.even import Even
from trainyard.policy.place.fit import allocate, one_node, worker_shares
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.servers import with_servers
from trainyard.policy.request import Request
from trainyard.state.room import Room

JOB = Job("a", 0.0, 1, duration_s=1.0)


def room_with(*free):
    """Nodes n0, n1, ... of 4 GPUs, 12 CPUs and 240 GB each, with (GPUs, CPUs, GB) free."""
    room = Room(*(list(column) for column in zip(*free, strict=True)))
    room.plain = False
    return NodeTable(nodes_of(*[4] * len(free))), room


def seats(parts, servers, server, *free, worker=(1.0, 10.0)):
    """Workers and servers by node, for workers that sit on these nodes."""
    nodes, room = room_with(*free)
    request = Request(JOB, sum(gpus for _, gpus in parts), -1, *worker, servers, Demand(*server))
    shares = with_servers(request, worker_shares(request, parts, nodes), room, nodes)
    if shares is None:
        return None
    for node, gpus, count, cpus, memory_gb in shares:
        assert cpus == pytest.approx(gpus * worker[0] + count * server[0]), node
        assert memory_gb == pytest.approx(gpus * worker[1] + count * server[1]), node
    return [share[:3] for share in shares]


@pytest.mark.parametrize(
    ("server", "first"),
    [
        ((2.0, 1.0), (4, 5.0, 240.0)),  # (5 - 1) / 2: CPUs for exactly two
        ((2.0, 1.0), (4, 6.9, 240.0)),
        ((0.1, 15.0), (4, 12.0, 40.0)),  # (40 - 10) / 15: memory for exactly two
        ((0.1, 15.0), (4, 12.0, 54.0)),
        ((0.3, 1.0), (4, 1.6, 240.0)),  # 0.6 / 0.3 comes out a little below two
        ((0.0, 15.0), (4, 1.0, 40.0)),  # no CPUs needed, none left
        ((2.0, 0.0), (4, 5.0, 10.0)),  # no memory needed, none left
    ],
)
def test_beside_a_worker_sit_as_many_servers_as_its_node_has_cpus_and_memory_for(server, first):
    assert seats([(0, 1)], 3, server, first, (4, 12.0, 240.0)) == [("n0", 1, 2), ("n1", 0, 1)]


def test_a_node_short_of_cpus_for_its_own_workers_seats_no_server():
    assert seats([(0, 2)], 1, (1.0, 1.0), (2, 1.0, 240.0), (4, 12.0, 240.0)) == [("n0", 2, 0), ("n1", 0, 1)]


def test_who_finds_no_seat_beside_its_worker_sits_beside_another_one_first():
    free = [(4, 4.0, 240.0), (4, 4.0, 240.0), (0, 12.0, 240.0)]
    assert seats([(0, 1), (1, 3)], 4, (1.0, 1.0), *free) == [("n0", 1, 3), ("n1", 3, 1)]
    assert seats([(0, 1), (1, 3)], 6, (1.0, 1.0), *free) == [("n0", 1, 3), ("n1", 3, 1), ("n2", 0, 2)]


def test_elsewhere_servers_sit_where_gpus_need_the_cpus_least():
    free = [(1, 1.0, 240.0), (4, 12.0, 240.0), (1, 2.0, 240.0), (2, 1.0, 240.0), (0, 0.9, 240.0)]
    one = (1.0, 1.0)
    assert seats([(0, 1)], 1, one, *free) == [("n0", 1, 0), ("n2", 0, 1)]
    assert seats([(0, 1)], 4, one, *free) == [("n0", 1, 0), ("n2", 0, 2), ("n3", 0, 1), ("n1", 0, 1)]


def test_there_are_seats_for_all_servers_or_for_none():
    free = [(1, 2.0, 240.0), (4, 3.0, 240.0)]
    assert seats([(0, 1)], 4, (1.0, 1.0), *free) == [("n0", 1, 1), ("n1", 0, 3)]
    assert seats([(0, 1)], 5, (1.0, 1.0), *free) is None


def test_memory_decides_elsewhere_too():
    free = [(1, 1.0, 240.0), (1, 12.0, 39.0), (2, 12.0, 40.0)]
    assert seats([(0, 1)], 3, (1.0, 20.0), *free) == [("n0", 1, 0), ("n1", 0, 1), ("n2", 0, 2)]
    assert seats([(0, 1)], 4, (1.0, 20.0), *free) is None


def test_an_allocation_with_servers_is_theirs_and_their_workers_or_none():
    nodes, room = room_with((2, 3.0, 240.0), (4, 1.0, 240.0))
    request = Request(JOB, 2, -1, 1.0, 10.0, 2, Demand(1.0, 5.0))
    found = allocate(request, [(0, 2)], room, nodes)
    assert found.shares == (Share("n0", 2, 1, 3.0, 25.0), Share("n1", 0, 1, 1.0, 5.0))
    assert allocate(request._replace(servers=3), [(0, 2)], room, nodes) is None


def test_even_packs_whose_servers_fit_beside_no_worker():
    """Not with a node that has no worker at all: that would be uneven too."""
    nodes, room = room_with((4, 12.0, 240.0), (1, 12.0, 240.0))
    found = Even().find(Request(JOB, 1, -1, 1.0, 10.0, 1, Demand(12.0, 20.0)), room, nodes, 0)
    assert [share[:3] for share in found.shares] == [("n1", 1, 0), ("n0", 0, 1)]


def test_pack_puts_workers_and_servers_on_one_node_if_any_has_room_for_all():
    nodes, room = room_with((2, 2.0, 240.0), (4, 12.0, 240.0))
    request = Request(JOB, 2, -1, 1.0, 10.0, 1, Demand(2.0, 5.0))
    assert Pack().find(request, room, nodes, 0).shares == (Share("n1", 2, 1, 4.0, 25.0),)
    assert [share[:3] for share in Pack().find(request._replace(servers=6), room, nodes, 0).shares] == [
        ("n0", 2, 0),
        ("n1", 0, 6),
    ]


@pytest.mark.parametrize("small", [Node("s", "GPU", 4, 1.0, 400.0), Node("s", "GPU", 4, 12.0, 1.0)])
def test_one_node_may_be_much_larger_than_the_others(small):
    nodes = NodeTable(Cluster("unlike", (small, Node("l", "GPU", 4, 12.0, 240.0))))
    request = Request(JOB, 2, -1, 1.0, 10.0, 1, Demand(2.0, 5.0))
    assert one_node(request, Room.all_of(nodes), nodes) == [Share("l", 2, 1, 4.0, 25.0)]
