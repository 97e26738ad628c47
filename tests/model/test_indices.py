"""GPU indices: the lowest free ones go first, none goes to two, and all come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.errors import TrainyardError
from trainyard.model.indices import GpuIndices


def test_the_lowest_free_indices_go_first():
    indices = GpuIndices({"a": 4, "b": 2})
    assert indices.take("a", 2) == (0, 1)
    assert indices.take("a", 1) == (2,)
    assert indices.take("b", 2) == (0, 1)
    indices.give_back("a", (0,))
    assert indices.free("a") == (0, 3)
    assert indices.take("a", 2) == (0, 3)
    assert indices.free("a") == indices.free("b") == ()


def test_no_gpus_have_no_indices():
    indices = GpuIndices({"cpu": 0, "a": 1})
    assert indices.take("cpu", 0) == indices.take("a", 0) == indices.free("cpu") == ()
    indices.give_back("a", ())
    assert indices.free("a") == (0,)


def test_more_than_there_are_is_refused_and_takes_nothing():
    indices = GpuIndices({"a": 3})
    indices.take("a", 1)
    with pytest.raises(TrainyardError, match="node a has 2 free GPUs, not 3"):
        indices.take("a", 3)
    assert indices.free("a") == (1, 2)


def test_only_what_is_taken_is_given_back():
    indices = GpuIndices({"a": 3})
    mine = indices.take("a", 2)
    for wrong, index in (((0, 2), 2), ((1, 1), 1), ((7,), 7)):
        with pytest.raises(TrainyardError, match=f"GPU {index} of node a is not taken"):
            indices.give_back("a", wrong)
        assert indices.free("a") == (2,)  # nothing of it
    indices.give_back("a", mine)
    with pytest.raises(TrainyardError, match="GPU 0 of node a is not taken"):
        indices.give_back("a", mine)


SIZES = {"a": 8, "b": 3, "c": 1, "d": 70}
steps = st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 9), st.booleans()), max_size=60)


@given(steps)
def test_each_gpu_is_whose_a_plain_set_says(moves):
    """Takes and returns in any order, against sets of free indices."""
    indices, plain = GpuIndices(SIZES), {node: set(range(count)) for node, count in SIZES.items()}
    held: list[tuple[str, tuple[int, ...]]] = []
    for node, number, take in moves:
        if take and number <= len(plain[node]):
            taken = indices.take(node, number)
            assert taken == tuple(sorted(plain[node])[:number])
            plain[node] -= set(taken)
            held.append((node, taken))
        elif held and not take:
            where, back = held.pop(number % len(held))
            indices.give_back(where, back)
            plain[where] |= set(back)
        assert indices.free(node) == tuple(sorted(plain[node]))
    for where, back in held:
        indices.give_back(where, back)
    assert all(indices.free(node) == tuple(range(count)) for node, count in SIZES.items())
