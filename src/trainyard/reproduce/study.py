"""A paper's experiments: parts that say what to run, and what tables and pictures to make of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainyard.reproduce.findings import Findings, Table
from trainyard.reproduce.pool import in_parallel


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


@dataclass(frozen=True, slots=True)
class Study:
    """All parts of one paper."""

    paper: str
    parts: Sequence[Part]

    def steps(self, quick: bool) -> int:
        """Return how often `reproduce` will tell that something is done."""
        return len(self._tasks(quick))

    def reproduce(self, quick: bool, tell: Callable[[int], None]) -> Findings:
        """Run all experiments and lay them out."""
        found = in_parallel(_carry_out, self._tasks(quick), tell)
        by_part = [(part, part.tables(quick, found)) for part in self.parts]
        pictures = {name: png for part, own in by_part for name, png in part.pictures(own).items()}
        return Findings(self.paper, [table for _, own in by_part for table in own], pictures)

    def _tasks(self, quick: bool) -> list[Task]:
        """Every run once."""
        return list(dict.fromkeys(task for part in self.parts for task in part.tasks(quick)))


def _carry_out(task: Task) -> Any:
    return task.carry_out()
