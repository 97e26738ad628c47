"""Numbers as people say them: 42 s, 1.3 h, 61.2%."""

from __future__ import annotations

import math
from typing import NamedTuple

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MISSING = "-"

# Where a logarithmic axis of durations gets its labels: the units people know, not powers of ten.
DURATION_TICKS: tuple[tuple[float, str], ...] = (
    (0.1, "0.1 s"),
    (1, "1 s"),
    (10, "10 s"),
    (MINUTE, "1 min"),
    (10 * MINUTE, "10 min"),
    (HOUR, "1 h"),
    (6 * HOUR, "6 h"),
    (DAY, "1 day"),
    (7 * DAY, "1 week"),
    (30 * DAY, "1 month"),
    (365 * DAY, "1 year"),
)


class TimeUnit(NamedTuple):
    """The unit of a linear time axis."""

    name: str
    seconds: float


def short(value: float) -> str:
    """Return about three significant digits, without an exponent: 0.012, 1.3, 42, 1,204."""
    if not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def duration(seconds: float) -> str:
    """Return a time span in the unit that suits it: 850 ms, 42.0 s, 7.5 min, 1.30 h, 3.20 d."""
    if not math.isfinite(seconds):
        return MISSING
    size = abs(seconds)
    for limit, unit, name in (
        (1, 0.001, "ms"),
        (100, 1, "s"),
        (HOUR, MINUTE, "min"),
        (2 * DAY, HOUR, "h"),
    ):
        if size < limit:
            return f"{short(seconds / unit)} {name}" if seconds else "0 s"
    return f"{short(seconds / DAY)} d"


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with one decimal."""
    return f"{100 * fraction:.1f}%" if math.isfinite(fraction) else MISSING


def count(value: float) -> str:
    """Return a whole number with thousands separators; from 100,000 on in thousands or millions."""
    if not math.isfinite(value):
        return MISSING
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 100 * unit or (unit == 1e6 and abs(value) >= unit):
            return f"{short(value / unit)}{name}"
    return f"{value:,.0f}"


def hours(seconds: float) -> str:
    """Return a span in hours, without the unit: 0.25, 7.50, 1,204, 12.3M."""
    value = seconds / HOUR
    return count(value) if value > 10 else short(value)


def times(value: float) -> str:
    """Return a ratio: 2.31x."""
    return f"{short(value)}x" if math.isfinite(value) else MISSING


def axis_unit(span_s: float) -> TimeUnit:
    """Choose the unit of a time axis that covers the given span."""
    for limit, unit in (
        (5 * MINUTE, TimeUnit("seconds", 1.0)),
        (3 * HOUR, TimeUnit("minutes", MINUTE)),
        (4 * DAY, TimeUnit("hours", HOUR)),
    ):
        if span_s < limit:
            return unit
    return TimeUnit("days", DAY)
