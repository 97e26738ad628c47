"""How much work a job is believed to be, when nobody said: a mean, a range, and where that comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Source = Literal["told", "profile", "fitted", "history", "guess"]
GUESS_S = 3600.0  # of work, when nothing at all is known
# The tail of a Pareto distribution with exponent 2: whoever ran for so long needs as much again, on average.
MEAN, P10, P90 = 2.0, 0.9**-0.5, 0.1**-0.5


class Estimate(NamedTuple):
    """Total work of a job in seconds, as if it ran with what it asks for at reference speed."""

    mean: float
    p10: float
    p90: float
    source: Source


def told(total_s: float) -> Estimate:
    """The user, or the job itself, says how much it is."""
    return Estimate(total_s, total_s, total_s, "told")


def heavy_tail(attained_s: float) -> Estimate:
    """Return what to believe of a job that has run longer than anything known: it needs as much again."""
    least = max(attained_s, GUESS_S / MEAN)
    return Estimate(MEAN * least, P10 * least, P90 * least, "guess")


def from_totals(longer: Sequence[float]) -> Estimate:
    """Return what to believe of a job like these, sorted, each of which took longer than it has so far."""
    mean = sum(longer) / len(longer)
    return Estimate(mean, _quantile(longer, 0.1), _quantile(longer, 0.9), "history")


def _quantile(values: Sequence[float], part: float) -> float:
    """Linear between the two nearest of sorted values."""
    at = part * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])
