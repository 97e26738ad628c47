"""How the jobs of a run ended, in words, and of which of them the completion times are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainyard.report import units
from trainyard.report.measures import Summary, number
from trainyard.sim.result import UNFINISHED

OF_WHOM = "Completion times are those of all jobs that ended, however they did."


def counted(summary: Summary) -> dict[str, int]:
    """Return how many jobs ended how; those ends alone that any job had."""
    counts = summary.get("outcomes")
    return {end: n for end, n in counts.items() if n} if isinstance(counts, Mapping) else {}


def others(summary: Summary) -> str:
    """Say how many jobs are not done, and of how many the times are; empty if all are done."""
    counts = counted(summary)
    rest = _said({end: n for end, n in counts.items() if end != "done"})
    ended = units.count(sum(counts.values()) - counts.get(UNFINISHED, 0))
    return f"{rest}; times are of the {ended} that ended" if rest else ""


def how_they_ended(summaries: Sequence[Summary]) -> str:
    """Say how the jobs of several runs ended; empty if all are done in all of them."""
    alike: dict[str, list[str]] = {}  # what is said of a run -> policies
    for summary in summaries:
        alike.setdefault(_said(counted(summary)), []).append(str(summary["policy"]))
    if all(set(counted(summary)) <= {"done"} for summary in summaries):
        return ""
    jobs = f"Of {units.count(number(summaries[0], 'jobs'))} jobs"
    if len(alike) == 1:
        return f"{jobs} {next(iter(alike))}. {OF_WHOM}"
    each = (f"{', '.join(policies)}: {said}" for said, policies in alike.items())
    return f"{jobs}, {'; '.join(each)}. {OF_WHOM}"


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{units.count(n)} {end}" for end, n in counts.items())
