"""Decisions that a learned policy left to another one, in words."""

from __future__ import annotations

from trainyard.report import units
from trainyard.sim.result import Result


def fallback(result: Result) -> str:
    """Say how many decisions of a run were left to whom; empty if none were."""
    of = units.count(result.decision_ms.size)
    left = (f"{units.count(number)} of {of} decisions left to {to}" for to, number in result.left_to.items())
    return ", ".join(left)
