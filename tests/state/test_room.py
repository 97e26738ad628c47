"""Free resources by node, and the searches over nodes grouped by free GPUs, against plain counting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, Node, NodeTable, uniform_cluster
from trainyard.state.room import (
    Room,
    best_fit,
    counts_of,
    emptiest_nodes,
    fewest_nodes,
    first,
    levels_of,
    mask_of,
    total,
    within,
)

free_gpus = st.lists(st.integers(0, 5), min_size=1, max_size=6)
NODES = NodeTable(Cluster("three", tuple(Node(f"n{i}", "V100", 4, 12.0, 40.0) for i in range(3))))


def levels(counts):
    return levels_of(np.array(counts, dtype=np.int64))


def room(*gpus):
    return Room(list(gpus), [3.0 * g for g in gpus], [10.0 * g for g in gpus])


def least_number_of_nodes(counts, gpus):
    """Try every set of nodes, small ones first."""
    for size in range(1, len(counts) + 1):
        if any(sum(chosen) >= gpus for chosen in combinations(counts, size)):
            return size
    return None


def test_levels_by_hand():
    assert levels([2, 0, 1, 2]) == [0b0010, 0b0100, 0b1001]
    assert levels([0, 0]) == [0b11]
    assert levels([]) == [0]


def test_masks_of_more_nodes_than_fit_into_a_machine_word():
    chosen = np.zeros(130, dtype=np.bool_)
    chosen[[0, 8, 64, 129]] = True
    assert mask_of(chosen) == 1 | 1 << 8 | 1 << 64 | 1 << 129
    assert mask_of(~chosen).bit_count() == 126


@pytest.mark.parametrize(("mask", "lowest"), [(1, 0), (2, 1), (0b1100, 2), (1 << 99 | 1 << 77, 77)])
def test_the_first_node_is_the_lowest_bit(mask, lowest):
    assert first(mask) == lowest


@given(free_gpus)
def test_levels_hold_every_node_once(counts):
    grouped = levels(counts)
    assert total(grouped) == sum(counts)
    assert counts_of(grouped) == {i: count for i, count in enumerate(counts) if count}
    assert sum(mask.bit_count() for mask in grouped) == len(counts)
    assert len(grouped) == max(counts) + 1


@given(free_gpus, st.integers(0, 63))
def test_within_keeps_only_the_chosen_nodes(counts, mask):
    kept = counts_of(within(levels(counts), mask))
    assert kept == {i: count for i, count in enumerate(counts) if count and mask >> i & 1}


@given(free_gpus, st.integers(1, 7))
def test_best_fit_leaves_least_and_takes_the_first_of_equals(counts, gpus):
    fitting = [(count, i) for i, count in enumerate(counts) if count >= gpus]
    assert best_fit(levels(counts), gpus) == (min(fitting)[1] if fitting else None)


@given(free_gpus, st.integers(1, 32))
def test_fewest_nodes_are_the_fewest_there_could_be(counts, gpus):
    grouped = levels(counts)
    before = grouped.copy()
    parts = fewest_nodes(grouped, gpus)
    assert grouped == before  # a search takes nothing
    if sum(counts) < gpus:
        assert parts is None
        return
    assert sum(count for _, count in parts) == gpus
    assert all(0 < count <= counts[i] for i, count in parts)
    assert len({i for i, _ in parts}) == len(parts) == least_number_of_nodes(counts, gpus)


@given(free_gpus, st.integers(1, 32))
def test_all_but_the_last_of_the_fewest_nodes_are_filled(counts, gpus):
    parts = fewest_nodes(levels(counts), gpus)
    if parts is None:
        return
    *filled, (last, rest) = parts
    assert [count for _, count in filled] == [counts[i] for i, _ in filled]
    others = {i: count for i, count in enumerate(counts) if i not in dict(filled)}
    assert (counts[last], last) == min((count, i) for i, count in others.items() if count >= rest)


def test_fewest_nodes_by_hand():
    assert fewest_nodes(levels([4, 4, 2, 1]), 4) == [(0, 4)]
    assert fewest_nodes(levels([4, 4, 2, 1]), 6) == [(0, 4), (2, 2)]
    assert fewest_nodes(levels([4, 4, 2, 1]), 9) == [(0, 4), (1, 4), (3, 1)]
    assert fewest_nodes(levels([4, 4, 2, 1]), 11) == [(0, 4), (1, 4), (2, 2), (3, 1)]
    assert fewest_nodes(levels([4, 4, 2, 1]), 12) is None


@given(free_gpus, st.integers(1, 32))
def test_each_worker_goes_to_the_emptiest_node(counts, gpus):
    left, got = list(counts), [0] * len(counts)
    for _ in range(gpus):
        i = left.index(max(left))
        left[i] -= 1
        got[i] += 1
    expected = [(i, count) for i, count in enumerate(got) if count] if sum(counts) >= gpus else None
    grouped = levels(counts)
    assert emptiest_nodes(grouped, gpus) == expected
    assert grouped == levels(counts)


def test_emptiest_nodes_by_hand():
    assert emptiest_nodes(levels([1, 3, 3]), 3) == [(1, 2), (2, 1)]
    assert emptiest_nodes(levels([1, 3, 3]), 7) == [(0, 1), (1, 3), (2, 3)]
    assert emptiest_nodes(levels([1, 3, 3]), 8) is None


changes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-4, 4), st.floats(-9, 9), st.floats(-9, 9)), max_size=20
)


@given(changes)
def test_adding_keeps_groups_and_totals_as_recounted(steps):
    here = room(4, 2, 3)
    cpus, memory_gb = [12.0, 6.0, 9.0], [40.0, 20.0, 30.0]
    for i, gpus, more_cpus, more_gb in steps:
        if 0 <= here.gpus[i] + gpus <= 4:
            here.add(i, gpus, more_cpus, more_gb)
            cpus[i] += more_cpus
            memory_gb[i] += more_gb
        assert here.total == sum(here.gpus) == total(here.levels)
        assert counts_of(here.levels) == {k: count for k, count in enumerate(here.gpus) if count}
        assert len(here.levels) == 5
    assert (here.cpus, here.memory_gb) == (cpus, memory_gb)


def test_taking_debits_every_share_and_giving_credits_it_again():
    here = room(4, 2, 3)
    held = Allocation((Share("n0", 3, 0, 5.0, 7.0), Share("n2", 0, 2, 1.0, 2.0)))
    here.take(NODES, held)
    assert (here.gpus, here.total) == ([1, 2, 3], 6)
    assert (here.cpus, here.memory_gb) == ([7.0, 6.0, 8.0], [33.0, 20.0, 28.0])
    assert here.levels == [*levels([1, 2, 3]), 0]
    here.give(NODES, held)
    assert (here.gpus, here.total, here.levels) == ([4, 2, 3], 9, levels([4, 2, 3]))
    assert (here.cpus, here.memory_gb) == ([12.0, 6.0, 9.0], [40.0, 20.0, 30.0])


def test_a_copy_shares_nothing():
    here = room(4, 2)
    here.plain = False
    twin = here.copy()
    assert (twin.gpus, twin.cpus, twin.memory_gb) == (here.gpus, here.cpus, here.memory_gb)
    assert (twin.total, twin.plain, twin.levels) == (here.total, False, here.levels)
    twin.add(0, -4, -1.0, -2.0)
    assert (here.gpus, here.cpus, here.memory_gb) == ([4, 2], [12.0, 6.0], [40.0, 20.0])
    assert (here.total, here.levels) == (6, levels([4, 2]))
    assert (twin.total, twin.levels) == (2, [0b01, 0, 0b10, 0, 0])


def test_all_of_a_cluster_is_free():
    nodes = (Node("a", "V100", 4, 10.0, 64.0), Node("b", "CPU", 0, 32.0, 256.0))
    here = Room.all_of(NodeTable(Cluster("two", nodes)))
    assert (here.gpus, here.cpus, here.memory_gb) == ([4, 0], [10.0, 32.0], [64.0, 256.0])
    assert (here.total, here.plain) == (4, True)


def test_restoring_a_node_restores_the_sum():
    nodes = NodeTable(uniform_cluster(2, 4))
    room = Room.all_of(nodes)
    cpus, memory_gb = room.cpus[0], room.memory_gb[0]
    room.add(1, -3, -1.0, -2.0)
    assert (room.total, room.gpus, room.levels) == (5, [4, 1], [0, 2, 0, 0, 1])
    room.restore(1, 4, cpus, memory_gb)
    assert (room.total, room.gpus, room.levels) == (8, [4, 4], [0, 0, 0, 0, 3])
    assert (room.cpus[1], room.memory_gb[1]) == (cpus, memory_gb)
