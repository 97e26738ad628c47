"""Times as people write them."""

from __future__ import annotations

import time

import pytest

from trainyard.cli.shown.times import clock, long, short

NOON = 1_700_049_600.0  # 2023-11-15 12:00:00 UTC


@pytest.fixture
def in_london(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_london")
def test_the_date_is_said_unless_it_is_today():
    assert clock(NOON, NOON + 3600) == "12:00"
    assert clock(NOON + 1, NOON, seconds=True) == "12:00:01"
    assert clock(NOON, NOON + 86400) == "2023-11-15 12:00"
    assert clock(NOON + 13 * 3600, NOON) == "2023-11-16 01:00"


@pytest.mark.parametrize(
    ("seconds", "narrow", "said"),
    [
        (-0.2, "0s", "0 s"),
        (0, "0s", "0 s"),
        (42.4, "42s", "42 s"),
        (59.9, "59s", "60 s"),
        (90, "1m", "90 s"),
        (300, "5m", "5 min"),
        (3599, "59m", "60 min"),
        (4320, "1:12h", "72 min"),
        (12 * 3600, "12:00h", "12 h"),
        (100_000, "27:46h", "27.8 h"),
        (3 * 86400, "3d", "3 d"),
    ],
)
def test_lengths(seconds, narrow, said):
    assert (short(seconds), long(seconds)) == (narrow, said)
