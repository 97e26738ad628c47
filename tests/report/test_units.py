"""Numbers in words, at the values where the unit or the number of digits changes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.report import units


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (0.012, "0.012"),
        (0.0994, "0.099"),
        (0.0995, "0.10"),
        (1.3, "1.30"),
        (9.994, "9.99"),
        (9.995, "10.0"),
        (99.94, "99.9"),
        (99.95, "100"),
        (1204.4, "1,204"),
        (-42.0, "-42.0"),
        (-0.5, "-0.50"),
    ],
)
def test_about_three_digits_are_shown(value, said):
    assert units.short(value) == said


@pytest.mark.parametrize("show", [units.short, units.duration, units.percent, units.count, units.times])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_a_dash(show, value):
    assert show(value) == "-"


@given(st.floats(1, 1e9))
def test_short_numbers_are_right_to_half_a_percent(value):
    assert float(units.short(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.001, "1.00 ms"),
        (0.5, "500 ms"),
        (1, "1.00 s"),
        (99, "99.0 s"),
        (100, "1.67 min"),
        (3599, "60.0 min"),
        (3600, "1.00 h"),
        (172_799, "48.0 h"),
        (172_800, "2.00 d"),
        (-90, "-90.0 s"),
        (-7200, "-2.00 h"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds, said):
    assert units.duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (99_999, "99,999"),
        (100_000, "100k"),
        (999_000, "999k"),
        (1_000_000, "1.00M"),
        (250_000_000, "250M"),
        (-1_500_000, "-1.50M"),
        (-12, "-12"),
    ],
)
def test_large_counts_are_thousands_or_millions(value, said):
    assert units.count(value) == said


def test_few_hours_have_decimals():
    spans = (900.0, 27_000.0, 36_000.0, 43_200.0, 4_334_400.0, math.nan)
    assert [units.hours(s) for s in spans] == ["0.25", "7.50", "10.0", "12", "1,204", "-"]


def test_parts_and_ratios():
    assert [units.percent(v) for v in (0, 0.0004, 0.6123, 1, 1.25)] == [
        "0.0%",
        "0.0%",
        "61.2%",
        "100.0%",
        "125.0%",
    ]
    assert [units.times(v) for v in (0, 0.5, 2.314, 120.4)] == ["0x", "0.50x", "2.31x", "120x"]


@pytest.mark.parametrize(
    ("span_s", "name", "seconds"),
    [
        (0, "seconds", 1),
        (299.9, "seconds", 1),
        (300, "minutes", 60),
        (10_799, "minutes", 60),
        (10_800, "hours", 3600),
        (345_599, "hours", 3600),
        (345_600, "days", 86_400),
    ],
)
def test_the_unit_of_an_axis_follows_its_span(span_s, name, seconds):
    assert units.axis_unit(span_s) == (name, seconds)


def test_labels_of_a_logarithmic_axis_say_their_own_value():
    per_unit = {"s": 1, "min": 60, "h": 3600, "day": 86_400, "week": 604_800, "month": 30 * 86_400}
    per_unit["year"] = 365 * 86_400
    for at, label in units.DURATION_TICKS:
        number, unit = label.split()
        assert at == float(number) * per_unit[unit]
    assert list(units.DURATION_TICKS) == sorted(units.DURATION_TICKS)
