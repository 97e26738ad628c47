"""Walks down a ranking: the quick ways against a plain loop and a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.policy.choose import walk
from trainyard.policy.choose.walk import by_key, greedy, take_in_order


def plain_walk(demand, budget):
    taken = []
    for wanted in demand:
        taken.append(wanted <= budget)
        budget -= wanted if taken[-1] else 0
    return taken


def full_sort(key, seq, demand, budget):
    order = sorted(range(len(key)), key=lambda row: (key[row], seq[row]))
    taken = plain_walk([demand[row] for row in order], budget)
    return [row for row, yes in zip(order, taken, strict=True) if yes]


@pytest.mark.parametrize("near", [0, 1, 3, 128])
@settings(max_examples=60)
@given(demand=st.lists(st.integers(0, 9), max_size=40), budget=st.integers(0, 60))
def test_greedy_is_the_plain_walk_however_few_are_looked_at_one_by_one(near, demand, budget):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "NEAR", near)
        picked = greedy(np.array(demand, dtype=np.float64), budget).tolist()
    wanted = plain_walk(demand, budget)
    # Once nothing is left, jobs that ask for nothing may be left out: they hold nothing either way.
    assert [taken for taken, gpus in zip(picked, demand, strict=True) if gpus] == [
        taken for taken, gpus in zip(wanted, demand, strict=True) if gpus
    ]


def test_greedy_takes_a_small_job_far_behind():
    demand = np.array([4.0] + [8.0] * 300 + [2.0, 3.0, 1.0])
    assert np.flatnonzero(greedy(demand, 7.0)).tolist() == [0, 301, 303]


def test_greedy_fills_the_budget_to_the_last():
    assert greedy(np.array([3.0, 2.0, 1.0]), 5.0).tolist() == [True, True, False]
    assert greedy(np.array([3.0, 3.0, 2.0]), 5.0).tolist() == [True, False, True]
    assert greedy(np.array([6.0, 5.0]), 5.0).tolist() == [False, True]


def test_greedy_of_nobody_and_with_nothing():
    assert greedy(np.zeros(0), 5.0).tolist() == []
    assert greedy(np.array([1.0, 2.0]), 0.0).tolist() == [False, False]


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), min_size=1, max_size=40)


@given(ROWS, st.randoms(use_true_random=False))
def test_by_key_breaks_ties_by_submission(rows, random):
    key = np.array([float(k) for k, _ in rows])
    seq = list(range(len(rows)))
    random.shuffle(seq)
    ranked = by_key(key, np.array(seq, dtype=np.float64)).tolist()
    assert ranked == sorted(range(len(rows)), key=lambda row: (key[row], seq[row]))


@given(ROWS, st.data())
def test_by_key_of_some_rows_ranks_only_these(rows, data):
    key = np.array([float(k) for k, _ in rows])
    seq = np.arange(len(rows), dtype=np.float64)[::-1].copy()
    some = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    ranked = by_key(key, seq, np.array(some, dtype=np.int64)).tolist()
    assert ranked == sorted(some, key=lambda row: (key[row], seq[row]))


def test_by_key_ranks_whole_numbers_beyond_the_precision_of_floats():
    key = np.array([2**60 + 1, 2**60, 2**60 + 2])
    assert by_key(key, np.zeros(3)).tolist() == [1, 0, 2]


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=120),
    st.integers(1, 60),
    st.integers(0, 20),
)
def test_take_in_order_is_the_walk_along_a_full_sort(rows, budget, about):
    key, demand = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    seq = np.arange(len(rows), dtype=np.float64)[::-1].copy()
    taken = take_in_order(key, seq, demand, budget, about).tolist()
    assert taken == full_sort(key.tolist(), seq.tolist(), demand.tolist(), budget)


def test_take_in_order_looks_behind_the_front_while_there_is_room():
    """The front, the first of a hundred, is too large; the only small job comes last."""
    key, demand = np.arange(100.0), np.full(100, 8.0)
    demand[99] = 4.0
    assert take_in_order(key, np.arange(100.0), demand, 5.0, 2).tolist() == [99]
    assert take_in_order(key, np.arange(100.0), demand, 3.0, 2).tolist() == []
    assert take_in_order(key, np.arange(100.0), demand, 12.0, 2).tolist() == [0, 99]


def test_take_in_order_keeps_ties_at_the_edge_of_the_front_together():
    """All keys are equal, so the front must hold every row; submission alone decides."""
    seq = np.arange(100.0)[::-1].copy()
    assert take_in_order(np.zeros(100), seq, np.ones(100), 3.0, 2).tolist() == [99, 98, 97]
