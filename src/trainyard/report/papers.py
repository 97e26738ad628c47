"""Which papers the stages of a policy are from."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard.errors import InputError
from trainyard.policy.grammar import entries_of
from trainyard.policy.registry import Entry


def stages_of(policy: str) -> dict[str, Entry]:
    """Return the entry of each term of a policy's name; none if a run is called something else."""
    try:
        return entries_of(policy)
    except InputError:
        return {}


def cited(entries: Iterable[Entry]) -> list[str]:
    """Return each paper once, with its venue."""
    return list(dict.fromkeys(entry.paper for entry in entries if entry.paper))


def papers(policy: str) -> list[str]:
    """Return the short names of a policy's papers, each once."""
    return [paper.partition(",")[0] for paper in cited(stages_of(policy).values())]
