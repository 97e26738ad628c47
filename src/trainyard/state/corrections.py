"""How much faster or slower than their profiles say the jobs of each kind have been measured to be."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from math import log2
from typing import Any, NamedTuple

MOST_KINDS = 1024  # the kind that was measured longest ago is forgotten
NEW = 0.25  # how much one more measurement counts
STEP = 1 / 8  # of an octave, about 9 %: what is believed follows in such steps, and ignores less


class Correction(NamedTuple):
    """Measured speed / speed by the profile."""

    measured: float
    believed: float


class Corrections:
    """Factors by the names of kinds."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, Correction] = OrderedDict()

    def learn(self, kind: str, ratio: float) -> bool:
        """A job of this kind was measured; return whether another speed is believed of its kind now."""
        before = self._of.get(kind)
        measured = ratio if before is None else smoothed(before.measured, ratio)
        was = believed = 1.0 if before is None else before.believed
        if abs(log2(measured / believed)) > STEP:  # not at every report: all that was worked out is void then
            believed = 2.0 ** (round(log2(measured) / STEP) * STEP)
        self._of[kind] = Correction(measured, believed)
        self._of.move_to_end(kind)
        forgotten = self._of.popitem(last=False)[1].believed if len(self._of) > MOST_KINDS else 1.0
        return believed != was or forgotten != 1.0

    def factors(self) -> dict[str, float]:
        """What is believed of each kind that is not as its profile says."""
        return {kind: it.believed for kind, it in self._of.items() if it.believed != 1.0}

    def copy(self) -> Corrections:
        """Return an independent copy."""
        twin = Corrections()
        twin._of = self._of.copy()
        return twin

    def record(self) -> list[dict[str, Any]]:
        """Return it as data for a file; `restored` makes the same of it again."""
        return [{"kind": kind, **it._asdict()} for kind, it in self._of.items()]


def smoothed(before: float, ratio: float) -> float:
    """Return what to believe after one more measurement."""
    return before + NEW * (ratio - before)


def restored(kept: Iterable[Mapping[str, Any]]) -> Corrections:
    """Take in what an earlier life knew."""
    corrections = Corrections()
    for entry in kept:
        corrections._of[entry["kind"]] = Correction(entry["measured"], entry["believed"])
    return corrections
