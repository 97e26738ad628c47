"""The story: every change of every job's state, with its cause."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from trainyard.model.allocation import Allocation
from trainyard.state.lifecycle import State


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
WIDTH: Final = 6  # cells of a row
BLOCK: Final = 65_536  # rows that are packed together
STATES: Final[tuple[State | None, ...]] = (None, *State)
CODE: Final = {state: code for code, state in enumerate(STATES)}


class Story:
    """An append-only log of changes. There are millions, too many for objects: they are packed in columns."""

    __slots__ = ("_blocks", "_cause_codes", "_causes", "_cells", "append")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._cells: list[Any] = []  # of the latest rows, one cell after the other
        self._causes: list[str] = []
        self._cause_codes: dict[str, int] = {}
        self.append: Callable[[Row], None] = self._cells.extend

    def pack(self) -> None:
        """Pack the latest rows if there are many."""
        cells = self._cells
        if len(cells) >= WIDTH * BLOCK:
            codes = self._cause_codes
            for cause in dict.fromkeys(cells[4::WIDTH]):
                if cause not in codes:
                    codes[cause] = len(codes)
                    self._causes.append(cause)
            self._blocks.append(_Block(cells, codes))
            cells.clear()

    def _rows(self) -> Iterator[Row]:
        for block in self._blocks:
            yield from block.rows(self._causes)
        yield from zip(*[iter(self._cells)] * WIDTH, strict=True)

    def __iter__(self) -> Iterator[Change]:
        return (Change(*row) for row in self._rows())

    def __len__(self) -> int:
        return sum(map(len, self._blocks)) + len(self._cells) // WIDTH

    def of(self, job_id: str) -> list[Change]:
        """Return everything that happened to one job, in order."""
        return [Change(*row) for row in self._rows() if row[1] == job_id]


class _Block:
    """Some rows, column by column."""

    __slots__ = ("after", "allocation", "before", "cause", "job_id", "time_s")

    def __init__(self, cells: list[Any], causes: dict[str, int]) -> None:
        self.time_s = array("d", cells[0::WIDTH])
        self.job_id: list[str] = cells[1::WIDTH]
        self.before = bytes([CODE[state] for state in cells[2::WIDTH]])
        self.after = bytes([CODE[state] for state in cells[3::WIDTH]])
        self.cause = array("L", [causes[cause] for cause in cells[4::WIDTH]])
        self.allocation: list[Allocation | None] = cells[5::WIDTH]

    def __len__(self) -> int:
        return len(self.before)

    def rows(self, causes: list[str]) -> Iterator[Row]:
        """Yield the rows again."""
        for at, job_id, before, after, cause, allocation in zip(
            self.time_s, self.job_id, self.before, self.after, self.cause, self.allocation, strict=True
        ):
            now = STATES[after]
            assert now is not None
            yield at, job_id, STATES[before], now, causes[cause], allocation
