"""Pack, spread, even, tetris and random: by hand, and against all ways to place a small gang."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_cases import TYPES, nodes_of, two_types
from trainyard.model.cluster import Cluster, Node, NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.policy.place.even import Even
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.random import Random
from trainyard.policy.place.spread import Spread
from trainyard.policy.place.tetris import Tetris, alignment
from trainyard.policy.request import Request
from trainyard.state.room import Room

JOB = Job("a", 0.0, 1, duration_s=1.0)


def with_free(*free, gpus=8):
    """Nodes of eight GPUs, some of which are free with their shares."""
    nodes = NodeTable(nodes_of(*[gpus] * len(free)))
    return nodes, Room(list(free), [3.0 * f for f in free], [60.0 * f for f in free])


def placed(place, gpus, *free, seed=0, **more):
    nodes, room = with_free(*free)
    found = place.find(Request(JOB, gpus, **more), room, nodes, seed)
    return None if found is None else {int(node[1:]): count for node, count in found.workers}


# -- pack -------------------------------------------------------------------------------------------------


def test_the_fullest_node_with_room_first_of_equals_the_first():
    assert placed(Pack(), 2, 4, 3, 2, 2) == {2: 2}
    assert placed(Pack(), 3, 4, 3, 2, 3) == {1: 3}


def test_a_gang_that_no_node_holds_fills_the_emptiest_and_the_rest_fits_best():
    assert placed(Pack(), 7, 3, 5, 2, 4) == {1: 5, 2: 2}
    assert placed(Pack(), 8, 3, 5, 2, 4) == {1: 5, 0: 3}
    assert placed(Pack(), 14, 3, 5, 2, 4) == {1: 5, 3: 4, 0: 3, 2: 2}
    assert placed(Pack(), 15, 3, 5, 2, 4) is None


SMALL = st.lists(st.integers(0, 4), min_size=1, max_size=4)


@settings(max_examples=80)
@given(SMALL, st.integers(1, 12))
def test_nobody_can_do_with_fewer_nodes(free, gpus):
    found = placed(Pack(), gpus, *free)
    ways = [way for way in product(*[range(f + 1) for f in free]) if sum(way) == gpus]
    if found is None:
        assert not ways
        return
    assert sum(found.values()) == gpus
    assert all(count <= free[node] for node, count in found.items())
    assert len(found) == min(np.count_nonzero(way) for way in ways)


@settings(max_examples=40)
@given(SMALL, st.integers(1, 4))
def test_one_node_is_the_best_fit(free, gpus):
    able = [node for node, has in enumerate(free) if has >= gpus]
    if able:
        best = min(able, key=lambda node: (free[node], node))
        assert placed(Pack(), gpus, *free) == {best: gpus}


def test_required_consolidation_waits_for_fewer_nodes():
    require = Pack("require")
    assert placed(require, 4, 2, 3) is None  # an empty node could hold all four
    assert placed(Pack(), 4, 2, 3) == {1: 3, 0: 1}
    assert placed(require, 3, 2, 3) == {1: 3}
    assert placed(require, 12, 8, 4) == {0: 8, 1: 4}  # two nodes are necessary
    assert placed(require, 12, 7, 5) == {0: 7, 1: 5}
    assert placed(require, 12, 4, 4, 4) is None


def test_a_faster_type_goes_first_unless_only_another_has_room():
    nodes = NodeTable(two_types(v100=2, k80=4))
    free = Room.all_of(nodes)
    assert Pack().find(Request(JOB, 2), free, nodes, 0).workers == (("v", 2),)
    assert Pack().find(Request(JOB, 3), free, nodes, 0).workers == (("k", 3),)
    assert Pack().find(Request(JOB, 6), free, nodes, 0).gpus == 6
    assert Pack().find(Request(JOB, 7), free, nodes, 0) is None


def pairs(cpus, server_cpus):
    """Two nodes of 2 GPUs with these CPUs, and a job of 2 workers of 2 CPUs and 2 servers."""
    nodes = NodeTable(Cluster("c", tuple(Node(name, "GPU", 2, cpus, 99.0) for name in "xy")))
    return Request(JOB, 2, -1, 2.0, 1.0, 2, Demand(server_cpus, 1.0)), Room.all_of(nodes), nodes, 0


def test_servers_sit_elsewhere_if_the_workers_take_all_cpus():
    found = Pack().find(*pairs(4.0, 2.0))
    assert sorted(share[:3] for share in found.shares) == [("x", 2, 0), ("y", 0, 2)]


def test_workers_spread_where_only_so_servers_find_room():
    """Beside both workers one CPU is left, and a node without any holds one server."""
    found = Pack().find(*pairs(5.0, 3.0))
    assert sorted(share[:3] for share in found.shares) == [("x", 1, 1), ("y", 1, 1)]
    assert Pack("require").find(*pairs(5.0, 3.0)) is None


# -- the others -------------------------------------------------------------------------------------------


def test_spread_puts_each_worker_where_most_is_free():
    assert placed(Spread(), 3, 4, 2, 3) == {0: 2, 2: 1}
    assert placed(Spread(), 4, 4, 4) == {0: 2, 1: 2}
    assert placed(Spread(), 9, 4, 2, 3) == {0: 4, 1: 2, 2: 3}
    assert placed(Spread(), 10, 4, 2, 3) is None


@settings(max_examples=60)
@given(SMALL, st.integers(1, 10))
def test_spread_leaves_no_node_much_fuller_than_another(free, gpus):
    found = placed(Spread(), gpus, *free)
    if found is None:
        assert sum(free) < gpus
        return
    left = [has - found.get(node, 0) for node, has in enumerate(free)]
    assert all(left[node] >= max(left) - 1 for node in found)


def test_even_splits_over_the_fewest_nodes_that_hold_equal_parts():
    assert placed(Even(), 4, 4, 8, 2) == {1: 4}
    assert placed(Even(), 12, 8, 8) == {0: 6, 1: 6}
    assert placed(Even(), 9, 8, 8) == {0: 5, 1: 4}
    assert placed(Even(), 6, 2, 2, 2) == {0: 2, 1: 2, 2: 2}


def test_even_takes_the_first_of_equal_nodes():
    assert placed(Even(), 2, 4, 4) == {0: 2}
    assert placed(Even(), 2, 3, 4, 4) == {1: 2}


def test_even_splits_servers_too_and_takes_another_node_if_they_need_it():
    """Four workers take all CPUs of four GPUs; split over two nodes they leave room for two servers each."""
    nodes, room = with_free(4, 4)
    together = Even().find(Request(JOB, 4, servers=4), room, nodes, 0)
    assert together.seats == (("n0", 4, 4),)
    apart = Even().find(Request(JOB, 4, -1, 3.0, 1.0, 4, Demand(1.0, 1.0)), room, nodes, 0)
    assert apart.seats == (("n0", 2, 2), ("n1", 2, 2))


def test_even_packs_what_it_cannot_split_evenly():
    assert placed(Even(), 9, 8, 1) == {0: 8, 1: 1}
    assert placed(Even(), 10, 8, 1) is None


def test_of_equally_roomy_nodes_even_takes_those_with_more_cpus():
    nodes, room = with_free(4, 4, 4)
    room.cpus = [12.0, 11.0, 13.0]
    assert Even().find(Request(JOB, 2), room, nodes, 0).workers == (("n2", 2),)


def test_tetris_takes_the_node_that_points_the_same_way():
    """Free as parts of the node: n0 has many GPUs and few CPUs, n1 the other way round."""
    nodes, room = with_free(4, 4)
    room.gpus, room.cpus, room.memory_gb, room.plain = [4, 4], [12.0, 24.0], [240.0, 240.0], False
    assert Tetris().find(Request(JOB, 2), room, nodes, 0).workers == (("n1", 2),)
    room.cpus, room.memory_gb = [12.0, 12.0], [300.0, 240.0]
    assert Tetris().find(Request(JOB, 2), room, nodes, 0).workers == (("n0", 2),)


def test_alignment_by_hand():
    """8 GPUs, 24 CPUs and 480 GB a node; with 2 CPUs and 30 GB for each GPU of the job."""
    nodes, room = with_free(4, 8)
    room.plain = False
    request = Request(JOB, 1, -1, 2.0, 30.0)
    score = alignment(request, room, nodes, np.array([0, 1]))
    half = 4 / 64 + 2 * 12 / 24**2 + 30 * 240 / 480**2
    assert score.tolist() == pytest.approx([half, 2 * half])


def test_alignment_with_proportional_shares_goes_by_gpus_alone():
    nodes, room = with_free(4, 8)
    room.cpus = [0.0, 0.0]  # not looked at while all shares are proportional
    assert alignment(Request(JOB, 1), room, nodes, np.array([1])).tolist() == pytest.approx([3 * 8 / 64])


def test_tetris_packs_what_no_node_holds():
    assert placed(Tetris(), 2, 4, 8) == {1: 2}
    assert placed(Tetris(), 4, 4, 3) == {0: 4}
    assert placed(Tetris(), 9, 4, 8) == {1: 8, 0: 1}
    assert placed(Tetris(), 13, 4, 8) is None


def test_random_depends_on_the_seed_and_the_job_alone():
    seats = [placed(Random(), 3, *[2] * 8, seed=seed) for seed in range(20)]
    assert seats == [placed(Random(), 3, *[2] * 8, seed=seed) for seed in range(20)]
    assert len({tuple(sorted(seat)) for seat in seats}) > 5


@settings(max_examples=40)
@given(SMALL, st.integers(1, 10), st.integers(0, 5))
def test_random_fills_nodes_one_after_the_other(free, gpus, seed):
    found = placed(Random(), gpus, *free, seed=seed)
    if found is None:
        assert sum(free) < gpus
        return
    assert sum(found.values()) == gpus
    assert all(0 < count <= free[node] for node, count in found.items())
    assert sum(count < free[node] for node, count in found.items()) <= 1


@pytest.mark.parametrize("place", [Pack(), Spread(), Even(), Tetris(), Random()])
def test_put_takes_what_was_found_out_of_what_is_free(place):
    nodes = NodeTable(Cluster("m", two_types(4, 4).nodes, TYPES))
    free = Room.all_of(nodes)
    found = place.put(Request(JOB, 3), free, nodes, 0)
    assert found.workers == (("v", 3),)
    assert (free.gpus, free.total, free.cpus, free.plain) == ([4, 1], 5, [12.0, 3.0], True)
    assert place.put(Request(JOB, 6), free, nodes, 0) is None
    assert free.gpus == [4, 1]


@pytest.mark.parametrize("own", [{"cpus_per_gpu": 1.0}, {"memory_per_gpu": 1.0}])
def test_shares_of_their_own_choice_end_the_plain_counting(own):
    nodes, free = with_free(4)
    Pack().put(Request(JOB, 1, **own), free, nodes, 0)
    assert not free.plain
