"""Squeezing a node and handing out what is left: steps by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.model.speed.sensitivity import Ladder
from trainyard.policy.tune.synergy.share_out import (
    Descent,
    Seat,
    _cheapest,
    _down,
    _shortage,
    _snap,
    speed_at,
    squeeze,
    worth,
)

STEEP = Ladder((1.0, 2.0), (1.0, 1.0), (1.0, 2.0), (True,))  # CPUs double the speed
FLAT = Ladder((0.5, 1.5), (1.0, 1.0), (1.0, 1.2), (True,))  # CPUs hardly help
MEMORY = Ladder((1.0, 1.0), (1.0, 2.0), (1.0, 2.0), (True,))
WHOLE_STEPS = Ladder((0.5, 1.5), (1.0, 1.0), (1.0, 1.2), (False,))
TALL = Ladder((0.5, 0.5, 1.5, 1.5), (0.5, 1.0, 1.0, 2.0), (1.0, 1.5, 1.8, 2.0), (True, True, True))
CPUS, GB = (True, False), (False, True)


def squeezed(*seats, room=(1.0, 1.0)):
    made = [Seat(ladder, part) for ladder, part in seats]
    places = [float(ladder.top) for ladder, _ in seats]
    squeeze(made, places, room)
    return places


def test_speed_is_linear_between_rungs():
    assert [speed_at(TALL, place) for place in (0.0, 0.5, 1.0, 2.5, 3.0)] == pytest.approx(
        [1.0, 1.25, 1.5, 1.9, 2.0]
    )


def test_the_shortage_of_a_node():
    seats = [Seat(STEEP, 0.5), Seat(MEMORY, 0.25)]
    assert _shortage(seats, [1.0, 1.0], (1.0, 1.0)) == pytest.approx((0.25, 0.0))
    assert _shortage(seats, [0.0, 0.5], (1.0, 0.5)) == pytest.approx((-0.25, 0.375))


def test_where_there_is_enough_nobody_steps_down():
    assert squeezed((STEEP, 0.5)) == [1.0]
    assert squeezed((STEEP, 0.25), (MEMORY, 0.375)) == [1.0, 1.0]


def test_who_loses_least_gives_only_what_is_missing():
    """2 x 0.4 + 1.5 x 0.4 = 1.4 of 1.0 CPUs: the flat one frees 0.4 with its whole step."""
    assert squeezed((STEEP, 0.4), (FLAT, 0.4)) == pytest.approx([1.0, 0.0])
    assert squeezed((STEEP, 0.4), (FLAT, 0.2)) == pytest.approx([1.0, 0.5])


def test_when_one_is_at_the_bottom_the_next_gives():
    """2 x 0.5 + 1.5 x 0.4 = 1.6: 0.4 from the flat one, 0.2 of 0.5 from the steep one."""
    assert squeezed((STEEP, 0.5), (FLAT, 0.4)) == pytest.approx([0.6, 0.0])


def test_a_step_that_cannot_be_stopped_on_is_taken_whole():
    assert squeezed((STEEP, 0.4), (WHOLE_STEPS, 0.2)) == pytest.approx([1.0, 0.0])


def test_nobody_gives_what_is_not_short():
    assert squeezed((STEEP, 0.6), (MEMORY, 0.2)) == pytest.approx([1 / 3, 1.0])
    assert squeezed((MEMORY, 0.6), (STEEP, 0.2)) == pytest.approx([1 / 3, 1.0])


def test_a_node_that_stays_short_leaves_all_at_the_bottom():
    assert squeezed((STEEP, 1.0), (FLAT, 1.0)) == [0.0, 0.0]


def test_less_room_takes_more():
    assert squeezed((STEEP, 0.5), room=(0.75, 1.0)) == pytest.approx([0.5])
    assert squeezed((MEMORY, 0.5), room=(1.0, 0.5)) == pytest.approx([0.0])


def test_worth_is_the_sum_of_speeds_after_the_squeeze():
    assert worth([Seat(STEEP, 0.5)]) == 2.0
    assert worth([Seat(STEEP, 0.4), Seat(FLAT, 0.2)]) == pytest.approx(2.0 + 1.1)
    assert worth([Seat(STEEP, 0.5)], (0.75, 1.0)) == pytest.approx(1.5)
    assert worth([]) == 0.0


# -- single steps -----------------------------------------------------------------------------------------


def test_a_way_down_frees_a_part_of_the_node():
    assert _down(Seat(FLAT, 0.5), 1.0, CPUS) == pytest.approx((1.0, 0.0, 0, 0.5, 0.0, 0.2, True))
    assert _down(Seat(FLAT, 0.5), 0.5, CPUS) == pytest.approx((0.5, 0.0, 0, 0.25, 0.0, 0.1, True))


def test_rungs_that_free_nothing_of_what_is_short_are_passed():
    """From the top of the tall ladder the next rung frees memory only: for CPUs it is given up."""
    way = _down(Seat(TALL, 1.0), 3.0, CPUS)
    assert way == pytest.approx((2.0, 2.0 - 1.8, 1, 1.0, 0.0, 0.3, True))
    assert _down(Seat(TALL, 1.0), 3.0, GB) == pytest.approx((3.0, 0.0, 2, 0.0, 1.0, 0.2, True))
    assert _down(Seat(TALL, 1.0), 2.0, GB) == pytest.approx((1.0, 1.8 - 1.5, 0, 0.0, 0.5, 0.5, True))


def test_at_the_bottom_there_is_no_way_down():
    assert _down(Seat(FLAT, 0.5), 0.0, CPUS) is None
    assert _down(Seat(FLAT, 0.5), 1.0, GB) is None
    assert _down(Seat(TALL, 0.5), 1.0, CPUS) is None


def step(cpus, memory, speed, lost=0.0, between=True):
    return Descent(1.0, lost, 0, cpus, memory, speed, between)


def test_the_cheapest_step_by_what_it_frees_of_what_is_short():
    assert _cheapest([step(0.5, 0.0, 0.2), step(0.5, 0.0, 0.1), None], 0.5, 0.0) == (1, 1.0)
    assert _cheapest([step(0.5, 0.0, 0.2), step(0.1, 0.0, 0.1)], 0.5, 0.0) == (0, 1.0)
    assert _cheapest([step(0.5, 0.0, 0.1), step(0.5, 0.0, 0.1)], 0.5, 0.0) == (0, 1.0)


def test_only_the_part_of_a_step_that_is_needed():
    assert _cheapest([step(0.5, 0.0, 0.2)], 0.25, 0.0) == (0, 0.5)
    assert _cheapest([step(0.5, 0.5, 0.2)], 0.1, 0.4) == (0, 0.8)
    assert _cheapest([step(0.5, 0.0, 0.2, between=False)], 0.25, 0.0) == (0, 1.0)


def test_what_was_lost_on_the_way_counts_as_cost():
    assert _cheapest([step(0.5, 0.0, 0.1, lost=0.2), step(0.5, 0.0, 0.2)], 0.5, 0.0)[0] == 1


def test_steps_that_free_nothing_are_not_taken():
    assert _cheapest([step(0.0, 0.5, 0.0), None], 0.5, 0.0)[0] == -1
    assert _cheapest([], 0.5, 0.5)[0] == -1


def test_places_snap_to_rungs_but_for_more_than_rounding():
    assert _snap(1.0 + 1e-13) == 1.0
    assert _snap(2.0 - 1e-13) == 2.0
    assert _snap(1.0 + 1e-9) == 1.0 + 1e-9
    assert math.isclose(_snap(0.5), 0.5)


LADDERS = st.sampled_from([STEEP, FLAT, MEMORY, TALL])


@settings(max_examples=60)
@given(st.lists(st.tuples(LADDERS, st.sampled_from([0.1, 0.25, 0.5])), min_size=1, max_size=4))
def test_what_is_taken_is_what_was_missing(seats):
    """A node ends no fuller than it is, or with all at the bottom; what is not short only gets more."""
    places = squeezed(*seats)
    made = [Seat(*seat) for seat in seats]
    before = _shortage(made, [float(ladder.top) for ladder, _ in seats], (1.0, 1.0))
    after = _shortage(made, places, (1.0, 1.0))
    for short, left, rungs in zip(before, after, ("cpus", "memory"), strict=True):
        lowest = sum(getattr(ladder, rungs)[0] * part for ladder, part in seats) - 1.0
        assert left <= max(lowest, 0.0) + 1e-9
        if short <= 0:
            assert left <= short + 1e-9
