"""SMD (Yu et al., INFOCOM 2021): its experiments, theirs beside ours.

Each part is a module: what it runs, and the tables and pictures that it makes of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from trainyard.reproduce import smd_interval, smd_online
from trainyard.reproduce.findings import Findings, Table
from trainyard.reproduce.pool import in_parallel

PAPER = (
    "Yu et al., A Sum-of-Ratios Multi-Dimensional-Knapsack Decomposition for DNN Resource Scheduling (SMD), "
    "INFOCOM 2021"
)


class Task(Protocol):
    """One run: a frozen dataclass."""

    def carry_out(self) -> Any:
        """Return what came of it."""
        ...


class Part(Protocol):
    """Some experiments."""

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return every run, the longest first."""
        ...

    def tables(self, quick: bool, found: Mapping[Any, Any]) -> Sequence[Table]:
        """Return the tables, given task -> what came of it."""
        ...

    def pictures(self, tables: Sequence[Table]) -> Mapping[str, bytes]:
        """Return file name -> PNG, drawn from this part's tables."""
        ...


PARTS: tuple[Part, ...] = (smd_online, smd_interval)


def steps(quick: bool) -> int:
    """Return how often `reproduce` will tell that something is done."""
    return len(_tasks(quick))


def reproduce(quick: bool, tell: Callable[[int], None]) -> Findings:
    """Run all experiments and lay them out."""
    found = in_parallel(_carry_out, _tasks(quick), tell)
    by_part = [(part, part.tables(quick, found)) for part in PARTS]
    pictures = {name: png for part, own in by_part for name, png in part.pictures(own).items()}
    return Findings(PAPER, [table for _, own in by_part for table in own], pictures)


def _tasks(quick: bool) -> list[Task]:
    """Every run once."""
    return list(dict.fromkeys(task for part in PARTS for task in part.tasks(quick)))


def _carry_out(task: Task) -> Any:
    return task.carry_out()
