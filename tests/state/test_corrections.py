"""How much faster than their profiles jobs of a kind are believed to be, computed by hand."""

from __future__ import annotations

import json

import pytest

from trainyard.state.corrections import MOST_KINDS, Corrections, restored, smoothed


def learnt(*measured):
    corrections = Corrections()
    for kind, ratio in measured:
        corrections.learn(kind, ratio)
    return corrections


def test_the_first_measurement_is_believed_if_it_is_far_enough_from_the_profile():
    corrections = Corrections()
    assert not corrections.learn("near", 1.05)
    assert not corrections.learn("step", 2**0.1249)  # an eighth of an octave is a step
    assert not corrections.learn("below", 2**-0.12)
    assert corrections.learn("fast", 2.0)
    assert corrections.learn("slow", 0.5)
    assert corrections.learn("odd", 1.3)  # 3.03 eighths of an octave
    assert corrections.factors() == {"fast": 2.0, "slow": 0.5, "odd": 2**0.375}


def test_later_ones_count_a_quarter_and_small_changes_are_ignored():
    corrections = learnt(("a", 2.0))
    assert not corrections.learn("a", 1.8)  # 1.95 on average
    assert corrections.factors() == {"a": 2.0}
    assert corrections.learn("a", 1.15)  # 1.75: 6.46 eighths of an octave
    assert corrections.factors() == {"a": 2**0.75}
    assert smoothed(2.0, 1.0) == 1.75


def test_believing_the_profile_again_is_a_change_too():
    corrections = learnt(("a", 1.2))
    assert corrections.factors() == {"a": 2**0.25}
    assert corrections.learn("a", 0.4)  # 1.0 on average
    assert corrections.factors() == {}


def test_the_kind_that_was_measured_longest_ago_is_forgotten():
    corrections = learnt(("a", 2.0), ("b", 2.0), *((str(i), 1.0) for i in range(1022)))
    assert len(corrections.record()) == MOST_KINDS == 1024
    corrections.learn("a", 2.0)
    assert corrections.learn("new", 1.0)  # speeds of kind b are no longer what they were
    assert corrections.factors() == {"a": 2.0}
    assert not corrections.learn("newer", 1.0)  # of the one that is forgotten now nothing was believed
    assert len(corrections.record()) == MOST_KINDS


def test_a_copy_learns_on_its_own():
    corrections = learnt(("a", 2.0))
    twin = corrections.copy()
    twin.learn("b", 4.0)
    twin.learn("a", 100.0)
    assert corrections.record() == [{"kind": "a", "measured": 2.0, "believed": 2.0}]
    assert set(twin.factors()) == {"a", "b"}


@pytest.mark.parametrize("measured", [(), (("a", 2.0), ("b", 1.05), ("a", 3.0))])
def test_what_is_believed_goes_through_a_file(measured):
    corrections = learnt(*measured)
    again = restored(json.loads(json.dumps(corrections.record())))
    assert again.record() == corrections.record()
    assert again.learn("a", 0.1) == corrections.learn("a", 0.1)
    assert again.record() == corrections.record()
