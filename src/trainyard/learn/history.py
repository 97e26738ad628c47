"""Recent history of a run: the last jobs that came and the last decisions, up to a fixed number."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trainyard.core.instructions import Ended
from trainyard.model.job import Job
from trainyard.model.tolerance import ROUGH_PART
from trainyard.policy.size.dl2.stage import Taken
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

MOST_NUMBERS = 4_000_000  # of all decisions that are kept
MOST_FOUND = 3  # times as many jobs as a block has: more that were there when it began are left out


class Decided(NamedTuple):
    """The decisions of one slot."""

    now_s: float
    met: float  # integral of the number of active jobs over time, up to then
    taken: Sequence[Taken]


class Block(NamedTuple):
    """Jobs that came one after the other, and what was left of those that were there already."""

    found: Sequence[Job]
    came: Sequence[Job]


class History:
    """The last blocks of jobs, in order of arrival, and the latest decisions."""

    def __init__(self, block: int, blocks: int) -> None:
        self.block = block
        self.jobs: deque[Job] = deque(maxlen=block * blocks)
        self.came = 0  # jobs so far, those that are forgotten too
        self.slots: deque[Decided] = deque()
        self._number: dict[str, int] = {}  # of each job that is kept
        self._found: dict[int, list[Job]] = {}  # by number of the block
        self._last_seq = 0.0
        self._numbers = 0
        self._before = 0.0, 0.0  # time, and `met`, of the decision before

    def see(self, snapshot: Snapshot, taken: Sequence[Taken]) -> None:
        """Take note of the jobs that are new, and of what was decided the last time."""
        if taken:
            self.slots.append(Decided(*self._before, taken))
            self._numbers += _size(self.slots[-1])
        while self._numbers > MOST_NUMBERS:
            self._numbers -= _size(self.slots.popleft())
        self._before = snapshot.now_s, snapshot.met
        seq, arrival_s = (snapshot.table.column(c) for c in (Column.SEQ, Column.ARRIVAL))
        new = np.flatnonzero(seq > self._last_seq)
        for row in new[np.argsort(seq[new])].tolist():
            if self.came % self.block == 0:
                self._found[self.came // self.block] = self._there(snapshot, row)
            self._add(replace(snapshot.table.jobs[row], arrival_s=float(arrival_s[row])))
            self._last_seq = float(seq[row])

    def _there(self, snapshot: Snapshot, row: int) -> list[Job]:
        """Jobs that came before this one and are not over, as if they came with it and were as short."""
        table = snapshot.table
        seq, arrival_s = table.column(Column.SEQ), float(table.column(Column.ARRIVAL)[row])
        left = snapshot.remaining_samples() / table.column(Column.TOTAL)
        earlier = np.flatnonzero((seq < seq[row]) & (left > ROUGH_PART))
        rows = earlier[np.argsort(seq[earlier])][: MOST_FOUND * self.block].tolist()
        return [replace(shortened(table.jobs[r], float(left[r])), arrival_s=arrival_s) for r in rows]

    def _add(self, job: Job) -> None:
        if len(self.jobs) == self.jobs.maxlen:
            self._number.pop(self.jobs[0].job_id, None)
            self._found.pop((self.came - len(self.jobs)) // self.block, None)
        self.jobs.append(job)
        self._number[job.job_id] = self.came
        self.came += 1

    def ended(self, end: Ended) -> None:
        """Correct the work of a job that ended before all of it was done."""
        number = self._number.get(end.job.job_id)
        if number is not None and end.undone > ROUGH_PART:
            at = number - (self.came - len(self.jobs))
            self.jobs[at] = shortened(self.jobs[at], max(1 - end.undone, ROUGH_PART))

    def blocks(self) -> dict[int, Block]:
        """Return the blocks that are whole; each keeps its number for ever."""
        kept, first, length = list(self.jobs), self.came - len(self.jobs), self.block
        numbers = range(-(-first // length), self.came // length)
        return {n: Block(self._found[n], kept[n * length - first :][:length]) for n in numbers}


def shortened(job: Job, part: float) -> Job:
    """Return a job with only part of its work."""
    if job.samples is not None:
        return replace(job, samples=job.samples * part)
    assert job.duration_s is not None
    return replace(job, duration_s=job.duration_s * part)


def _size(slot: Decided) -> int:
    return sum(one.jobs.size for one in slot.taken)
