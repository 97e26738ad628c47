"""Decisions that are not those of the policy named: left to another one, or taken to rescue a job."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.report import units
from trainyard.sim.result import Result


def fallback(result: Result) -> str:
    """Say how many decisions of a run were left to whom, or rescued a job; empty if none were or did."""
    of = units.count(result.decision_ms.size)
    left = [f"{units.count(number)} of {of} decisions left to {to}" for to, number in result.left_to.items()]
    if result.rescues:
        left.append(
            f"{units.count(result.rescues)} of {of} decisions let a job run because nothing would have"
        )
    return ", ".join(left)


def who_decided(results: Sequence[Result]) -> str:
    """Name the policies of which not all decisions are their own, with how many; empty if there are none."""
    left = [f"{result.policy}: {said}" for result in results if (said := fallback(result))]
    return f"Not all decisions are those of the policy named. {'; '.join(left)}." if left else ""
