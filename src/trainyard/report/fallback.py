"""Decisions that a learned policy left to another one, in words."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.report import units
from trainyard.sim.result import Result


def fallback(result: Result) -> str:
    """Say how many decisions of a run were left to whom; empty if none were."""
    of = units.count(result.decision_ms.size)
    left = (f"{units.count(number)} of {of} decisions left to {to}" for to, number in result.left_to.items())
    return ", ".join(left)


def who_decided(results: Sequence[Result]) -> str:
    """Name the policies that left decisions to others, with how many; empty if none did."""
    left = [f"{result.policy}: {said}" for result in results if (said := fallback(result))]
    return f"Not all decisions are those of the policy named. {'; '.join(left)}." if left else ""
