"""Reservations: when two want the same, and which nodes are chosen for so many GPUs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conftest import complaint
from trainyard.model.cluster import Node
from trainyard.model.reservation import Reservation
from trainyard.model.reserving import settled

NODES = [
    Node(name, kind, gpus, 8.0, 64.0)
    for name, kind, gpus in (
        ("big", "V", 8),
        ("four", "V", 4),
        ("two", "K", 2),
        ("other", "K", 4),
        ("none", "V", 0),
    )
]


def wish(gpus=0, from_s=0.0, to_s=10.0, **more):
    return Reservation("r", from_s, to_s, gpus=gpus, **more)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ((0, 10), (10, 20), False),
        ((0, 10), (9, 20), True),
        ((0, 10), (2, 3), True),
        ((0, 10), (0, 10), True),
        ((0, 10), (30, 40), False),
    ],
)
def test_whether_two_are_at_the_same_time(one, other, both):
    a, b = Reservation("a", *map(float, one)), Reservation("b", *map(float, other))
    assert a.overlaps(b) == b.overlaps(a) == both


@pytest.mark.parametrize(
    ("gpus", "gpu_type", "nodes"),
    [
        (1, "", ("two",)),
        (2, "", ("two",)),
        (3, "", ("four",)),  # the first of equals
        (5, "", ("big",)),
        (9, "", ("big", "two")),
        (12, "", ("big", "four")),
        (18, "", ("big", "four", "other", "two")),
        (3, "K", ("other",)),
        (6, "K", ("other", "two")),
    ],
)
def test_the_smallest_nodes_that_do(gpus, gpu_type, nodes):
    assert settled(wish(gpus, gpu_type=gpu_type), NODES, []).nodes == nodes


def test_there_are_not_so_many():
    assert complaint(settled, wish(19), NODES, []) == (
        "reservation r: there are not 19 GPUs to reserve at that time"
    )
    assert complaint(settled, wish(7, gpu_type="K"), NODES, []) == (
        "reservation r: there are not 7 GPUs of type K to reserve at that time"
    )


def test_nodes_that_others_have_then_are_not_chosen():
    others = [Reservation("x", 5.0, 20.0, ("two",)), Reservation("y", 10.0, 20.0, ("four",))]
    assert settled(wish(1), NODES, others).nodes == ("four",)
    assert settled(wish(1, 20.0, 30.0), NODES, others).nodes == ("two",)


def test_named_nodes_are_taken_as_they_are_unless_others_have_them():
    named = wish(nodes=("four", "two"))
    assert settled(named, NODES, [Reservation("x", 10.0, 20.0, ("two",))]) is named
    others = [Reservation("x", 9.0, 20.0, ("two",))]
    assert complaint(settled, named, NODES, others) == (
        "reservation r: node two is reserved already at that time"
    )


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6), st.integers(1, 40))
def test_no_fewer_nodes_would_do_and_none_is_superfluous(counts, gpus):
    nodes = [Node(f"n{i}", "V", count, 8.0, 64.0) for i, count in enumerate(counts)]
    assume(sum(counts) >= gpus)
    chosen = settled(wish(gpus), nodes, []).nodes
    got = [counts[int(name[1:])] for name in chosen]
    assert len(set(chosen)) == len(chosen)
    assert sum(got) >= gpus > sum(got) - min(got)
    fewest = next(k for k in range(1, 7) if any(sum(c) >= gpus for c in combinations(counts, k)))
    assert len(chosen) == fewest
