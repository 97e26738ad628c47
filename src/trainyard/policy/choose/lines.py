"""Waiting jobs in line, kept sorted between decisions.

Most preemptive orders give a job that waits a key that does not change until it runs again. Such jobs stand
in line, one line for each number of GPUs, so that a decision looks at the first of each line and at the few
running jobs that come after the very first, and at no others.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from trainyard.model.arrays import Ints
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

if TYPE_CHECKING:
    from trainyard.policy.choose.walk import Keys
    from trainyard.policy.order.by_key import KeyOrder

C = Column
LAST = 24  # running jobs, the last of the ranking, that are in question at first
Stand = tuple[float, float, str]  # key, submission, job
Heads = list[tuple[Stand, int, int]]  # a heap of the first of each line, its GPUs, its place in line
NONE_LEFT: Stand = (float("inf"), 0.0, "")  # comes after all


class Lines:
    """The waiting jobs of a snapshot as one order ranks them."""

    def __init__(self, order: KeyOrder, snapshot: Snapshot) -> None:
        self.order = order
        self.of_size: dict[int, list[Stand]] = {}
        self.stands: dict[str, tuple[int, Stand]] = {}
        for job_id in snapshot.waiting:
            self._join(snapshot, job_id)
        snapshot.waiting.journal = []

    def catch_up(self, snapshot: Snapshot) -> None:
        """Take in who came and who went since the last decision."""
        journal = snapshot.waiting.journal
        assert journal is not None
        for job_id in journal:
            stood = self.stands.pop(job_id, None)
            if stood is not None:
                line = self.of_size[stood[0]]
                del line[bisect_left(line, stood[1])]
            if job_id in snapshot.table.row_of and job_id not in snapshot.target:
                self._join(snapshot, job_id)
        journal.clear()

    def _join(self, snapshot: Snapshot, job_id: str) -> None:
        table = snapshot.table
        row = table.row_of[job_id]
        key = self.order.waiting_key(snapshot, row)
        stand = (key, table.cells[C.SEQ][row], job_id)
        gpus = table.jobs[row].gpus
        self.stands[job_id] = (gpus, stand)
        insort(self.of_size.setdefault(gpus, []), stand)

    def choose(self, snapshot: Snapshot, key: Keys) -> tuple[list[int], list[str]]:
        """Walk down the ranking, take all that fit; return the rows to stop and the jobs to start."""
        heads = [(line[0], gpus, 0) for gpus, line in self.of_size.items() if line]
        heapq.heapify(heads)
        first = heads[0][0] if heads else NONE_LEFT
        runs = snapshot.table.column(C.GIVEN) > 0
        late = (runs & (key >= first[0])).nonzero()[0]  # all others that run come first and stay
        keys = key[late]
        if late.size > 2 * LAST:
            ranked = keys.copy()
            ranked.partition(-LAST)
            pivot = ranked[-LAST].item()
            last = (keys >= pivot).nonzero()[0]
            found = self._walk(snapshot, heads.copy(), late[last], keys[last], pivot)
            if found is not None:
                return found
        found = self._walk(snapshot, heads, late, keys, float("-inf"))
        assert found is not None
        return found

    def _walk(
        self, snapshot: Snapshot, heads: Heads, rows: Ints, keys: Keys, pivot: float
    ) -> tuple[list[int], list[str]] | None:
        """Walk with only these running jobs in question; None if one before the pivot does not fit.

        All running jobs before the pivot are counted as taken, even those that come after a waiting one.
        """
        first = heads[0][0] if heads else NONE_LEFT
        runs: list[tuple[float, float, int, int]] = []
        left = snapshot.free.total
        if rows.size:
            jobs, seq, listed = snapshot.table.jobs, snapshot.table.column(C.SEQ), rows.tolist()
            columns = keys.tolist(), seq[rows].tolist(), listed, [jobs[row].gpus for row in listed]
            runs = sorted(zip(*columns, strict=True))
            left += sum(columns[3])
        stops: list[int] = []
        starts: list[str] = []
        for run in runs:
            while first < run:
                if heads[0][1] > left and first[0] < pivot:
                    return None
                left = self._first(heads, left, starts)
                first = heads[0][0] if heads else NONE_LEFT
            gpus = run[3]
            if gpus <= left:
                left -= gpus
            else:
                stops.append(run[2])
        while heads and left:
            left = self._first(heads, left, starts)
        return stops, starts

    def _first(self, heads: Heads, left: int, starts: list[str]) -> int:
        """Serve the first in line if there is room, else send its whole line home; return what is left."""
        stand, gpus, at = heads[0]
        if gpus > left:
            heapq.heappop(heads)
            return left
        starts.append(stand[2])
        line = self.of_size[gpus]
        if at + 1 < len(line):
            heapq.heapreplace(heads, (line[at + 1], gpus, at + 1))
        else:
            heapq.heappop(heads)
        return left - gpus


def lines_of(order: KeyOrder, snapshot: Snapshot) -> Lines:
    """Return the lines that the snapshot carries for this order, or form them."""
    lines = snapshot.waiting.lines
    if isinstance(lines, Lines) and lines.order is order:
        lines.catch_up(snapshot)
        return lines
    made = snapshot.waiting.lines = Lines(order, snapshot)
    return made
