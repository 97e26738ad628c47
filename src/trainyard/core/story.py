"""The story: every change of every job's state, with its cause."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

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


Step = tuple[State | None, State, str]  # from which state to which, and why
S = State

# What there are millions of, by number: a new job takes two steps at once.
OFTEN: Final[list[tuple[Step, ...]]] = [
    ((None, S.SUBMITTED, "submitted"), (S.SUBMITTED, S.WAITING, "accepted")),
    ((S.WAITING, S.RUNNING, "started"),),
    ((S.WAITING, S.RUNNING, "resumed"),),
    ((S.RUNNING, S.STOPPING, "preempted"),),
    ((S.STOPPING, S.WAITING, "stopped and saved"),),
    ((S.RUNNING, S.DONE, "all work done"),),
]
ARRIVED, STARTED, RESUMED, PREEMPTED, STOPPED, ALL_DONE = range(len(OFTEN))

Row = tuple[float, str, int, Allocation | None]  # when, which job, which steps, what it holds from now on
WIDTH: Final = 4  # cells of a row
BLOCK: Final = 65_536  # rows that are packed together


class _Block(NamedTuple):
    """Some rows, column by column."""

    time_s: array[float]
    job_id: list[str]
    step: array[int]
    allocation: list[Allocation | None]


class Story:
    """An append-only log of changes. There are millions, too many for objects: they are packed in columns.

    With a `sink` older changes are handed to it and forgotten here, so that the story stays short.
    """

    __slots__ = ("_blocks", "_cells", "_index", "_numbers", "_steps", "append", "sink")

    def __init__(self, sink: Callable[[list[Change]], None] | None = None) -> None:
        self.sink = sink
        self._blocks: list[_Block] = []
        self._index: list[dict[str, list[int]]] = []  # of each block, made when first asked for: job -> rows
        self._cells: list[Any] = []  # of the latest rows, one cell after the other
        self._steps = OFTEN.copy()
        self._numbers = {steps: number for number, steps in enumerate(OFTEN)}
        self.append: Callable[[Row], None] = self._cells.extend

    def __reduce__(self) -> tuple[object, ...]:
        return _retold, (self._blocks, self._cells, self._steps)

    def step(self, before: State | None, after: State, cause: str) -> int:
        """Return the number of a step, for a row."""
        alone = ((before, after, cause),)
        number = self._numbers.get(alone)
        if number is None:
            number = self._numbers[alone] = len(self._steps)
            self._steps.append(alone)
        return number

    def pack(self) -> None:
        """Pack the latest rows if there are many."""
        if len(self._cells) < WIDTH * BLOCK:
            return
        if self.sink is not None:
            self.sink(self.take())
        else:
            time_s, job_id, step, allocation = (self._cells[at::WIDTH] for at in range(WIDTH))
            self._blocks.append(_Block(array("d", time_s), job_id, array("I", step), allocation))
            self._cells.clear()

    def take(self) -> list[Change]:
        """Return what happened since the last time, and forget it: somebody else keeps it."""
        changes = list(self._changes(zip(*[iter(self._cells)] * WIDTH, strict=True)))
        self._cells.clear()
        if not self._blocks:  # nothing that is left has the number of such a step
            del self._steps[len(OFTEN) :]
            self._numbers = {steps: number for number, steps in enumerate(OFTEN)}
        return changes

    def _rows(self) -> Iterator[Row]:
        for block in self._blocks:
            yield from zip(block.time_s, block.job_id, block.step, block.allocation, strict=True)
        yield from zip(*[iter(self._cells)] * WIDTH, strict=True)

    def __iter__(self) -> Iterator[Change]:
        return self._changes(self._rows())

    def of(self, job_id: str) -> list[Change]:
        """Return everything that happened to one job, in order."""
        return list(self._changes(self._rows_of(job_id)))

    def _rows_of(self, job_id: str) -> Iterator[Row]:
        for block in self._blocks[len(self._index) :]:
            rows: dict[str, list[int]] = {}
            for at, name in enumerate(block.job_id):
                rows.setdefault(name, []).append(at)
            self._index.append(rows)
        for block, rows in zip(self._blocks, self._index, strict=True):
            for at in rows.get(job_id, ()):
                yield block.time_s[at], job_id, block.step[at], block.allocation[at]
        yield from (row for row in zip(*[iter(self._cells)] * WIDTH, strict=True) if row[1] == job_id)

    def _changes(self, rows: Iterator[Row]) -> Iterator[Change]:
        for time_s, job_id, number, allocation in rows:
            for before, after, cause in self._steps[number]:
                yield Change(time_s, job_id, before, after, cause, allocation)


def _retold(blocks: list[_Block], cells: list[Any], steps: list[tuple[Step, ...]]) -> Story:
    """Return a copy of a story that goes on in its own cells: `append` is bound to them."""
    story = Story()
    story._blocks += blocks
    story._cells += cells
    for number, each in enumerate(steps):
        story._numbers[each] = number
    story._steps[:] = steps
    return story
