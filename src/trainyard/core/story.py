"""The story: every change of every job's state, with its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trainyard.core.states import State
from trainyard.model.allocation import Allocation


@dataclass(slots=True)
class Change:
    """One job went from one state to another (or to another allocation of the same state)."""

    time_s: float
    job_id: str
    before: State | None
    after: State
    cause: str
    allocation: Allocation | None = None

    def __str__(self) -> str:
        where = ""
        if self.allocation is not None:
            where = " on " + ", ".join(f"{s.node} x{s.gpus}" for s in self.allocation.shares)
        return f"{self.time_s:.3f} s: {self.job_id} {self.after.value}{where} ({self.cause})"


Row = tuple[float, str, State | None, State, str, Allocation | None]
WIDTH = 6  # cells of a row


class Story:
    """An append-only log of changes, one cell after the other: there are millions, too many for objects."""

    __slots__ = ("_cells", "append")

    def __init__(self) -> None:
        self._cells: list[Any] = []
        self.append: Callable[[Row], None] = self._cells.extend

    def _rows(self) -> Iterator[Row]:
        return zip(*[iter(self._cells)] * WIDTH, strict=True)

    def __iter__(self) -> Iterator[Change]:
        return (Change(*row) for row in self._rows())

    def __len__(self) -> int:
        return len(self._cells) // WIDTH

    def of(self, job_id: str) -> list[Change]:
        """Return everything that happened to one job, in order."""
        return [Change(*row) for row in self._rows() if row[1] == job_id]
