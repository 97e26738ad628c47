"""Waiting and running jobs in line, kept sorted between decisions.

A job that waits has a key that does not change until it runs: such jobs stand in one line for each number of
GPUs. Keys of running jobs change with time, but most of them alike: those that do stand in one line, whose
order does not change either. A decision looks at the first of each line of waiting jobs and at the last of
each line of running ones, and at no others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

if TYPE_CHECKING:
    from trainyard.policy.order.by_key import SteadyOrder

MORE = 4  # times as many GPUs of running jobs are in question if the last ones did not show who stops
Stand = tuple[float, int, Record]  # key or token, submission, job
Heads = list[tuple[Stand, int, int]]  # a heap of the first of each line, its GPUs, its place in line
# The last of a line of running jobs: minus its measure, a tie-break, its place in line, the line, and how
# the line moves.
Tail = tuple[float, int, int, list[Stand], float, float]
EVERYBODY, NOBODY = float("-inf"), float("inf")


class Lines:
    """The active jobs of a snapshot as one order ranks them."""

    def __init__(self, order: SteadyOrder) -> None:
        self.order = order
        self.waiting: dict[int, list[Stand]] = {}  # by GPUs
        self.running: dict[Hashable, list[Stand]] = {}  # by how their keys change
        self._motions: dict[Hashable, tuple[float, float]] = {}  # of the lines of running jobs
        self._stands: dict[Record, tuple[list[Stand], Stand]] = {}
        self._read = -1

    def catch_up(self, snapshot: Snapshot) -> None:
        """Take in what changed since the last decision."""
        changed = snapshot.table.changed.since(self._read)
        if changed is None:
            self.waiting, self.running, self._stands = {}, {}, {}
            changed = snapshot.table.records
        stands = self._stands
        for record in dict.fromkeys(changed):
            stood = stands.pop(record, None)
            stands_now = self._stand(record) if record.row >= 0 else None
            if stood is not None:
                line, stand = stood
                if stands_now is not None and stands_now[0] is line and stands_now[1] == stand:
                    stands[record] = stood  # something else of it changed
                    continue
                del line[bisect_left(line, stand)]
            if stands_now is not None:
                line, stand = stands[record] = stands_now
                if line and line[-1] < stand:
                    line.append(stand)
                else:
                    insort(line, stand)
        self._read = snapshot.table.changed.version

    def _stand(self, record: Record) -> tuple[list[Stand], Stand]:
        """Return the line that a job belongs in, and as what it stands there."""
        if record.given:
            name, token = self.order.line(record)
            line = self.running.get(name)
            if line is None:
                line = self.running[name] = []
                self._motions[name] = self.order.motion(name)
        else:
            token = self.order.waiting_key(record)
            line = self.waiting.get(record.gpus)
            if line is None:
                line = self.waiting[record.gpus] = []
        return line, (token, record.seq, record)

    def choose(self, snapshot: Snapshot) -> tuple[list[Record], list[Record]]:
        """Walk down the ranking, take all that fit; return the jobs to stop and the jobs to start."""
        heads = [(line[0], gpus, 0) for gpus, line in self.waiting.items() if line]
        if not heads:
            return [], []
        heapify(heads)
        (first, _, _), gpus, _ = heads[0]
        late: list[Stand] = []
        free, now_s = snapshot.free.total, snapshot.now_s
        least, need = self.order.least(first, now_s), max(gpus - free, 1)
        tails = self._tails(now_s, least)
        while True:
            pivot = self._later(tails, now_s, first, least, need, late)
            found = _walk(self.waiting, heads.copy(), late, free, pivot)
            if found is not None:
                return found
            need *= MORE

    def _tails(self, now_s: float, least: float) -> list[Tail]:
        """Return a heap of the last of each line of running jobs, as far as they measure so much."""
        motions = self._motions
        tails: list[Tail] = []
        for name, line in self.running.items():
            if line:
                pace, drift = motions[name]
                moved = drift * now_s
                measure = pace * (line[-1][0] + moved)
                if measure >= least:
                    tails.append((-measure, len(tails), len(line) - 1, line, pace, moved))
        heapify(tails)
        return tails

    def _later(
        self, tails: list[Tail], now_s: float, first: float, least: float, need: int, late: list[Stand]
    ) -> float:
        """Add to `late` the last running jobs, sorted by key, until they have so many GPUs; return the pivot.

        The pivot is a number: the keys of these jobs are larger, and the keys of all others are not.
        """
        order, smallest = self.order, late[0][0] if late else NOBODY
        key_of, alike = order.key_of, NOBODY
        while tails:
            measured, tie, at, line, pace, moved = tails[0]
            if need <= 0 and -measured < alike:  # else its key may be as small as the smallest of these
                alike = order.least(smallest, now_s)
                if -measured < alike:
                    late.sort()
                    return order.bound(-measured, now_s)
            _, seq, record = line[at]
            if at and (measure := pace * (line[at - 1][0] + moved)) >= least:
                heapreplace(tails, (-measure, tie, at - 1, line, pace, moved))
            else:
                heappop(tails)
            key = key_of(record, now_s)
            if key >= first:
                late.append((key, seq, record))
                need -= record.given
                if key < smallest:
                    smallest = key
        late.sort()
        return EVERYBODY


def _walk(
    waiting: dict[int, list[Stand]], heads: Heads, late: list[Stand], left: int, pivot: float
) -> tuple[list[Record], list[Record]] | None:
    """Walk with only these running jobs in question; None if a waiting one before the pivot does not fit.

    All running jobs up to the pivot are counted as taken, even those that come after a waiting one.
    """
    for run in late:
        left += run[2].given
    stops: list[Record] = []
    starts: list[Record] = []
    for run in late:
        while heads and heads[0][0] < run:
            if heads[0][1] > left and heads[0][0][0] <= pivot:
                return None
            left = _serve(waiting, heads, left, starts)
        if run[2].given <= left:
            left -= run[2].given
        else:
            stops.append(run[2])
    while heads and left:
        if heads[0][1] > left and heads[0][0][0] <= pivot:
            return None
        left = _serve(waiting, heads, left, starts)
    if heads and heads[0][0][0] <= pivot:
        return None
    return stops, starts


def _serve(waiting: dict[int, list[Stand]], heads: Heads, left: int, starts: list[Record]) -> int:
    """Serve the first in line if there is room, else send its whole line home; return what is left."""
    stand, gpus, at = heads[0]
    if gpus > left:
        heappop(heads)
        return left
    starts.append(stand[2])
    line = waiting[gpus]
    if at + 1 < len(line):
        heapreplace(heads, (line[at + 1], gpus, at + 1))
    else:
        heappop(heads)
    return left - gpus


def lines_of(order: SteadyOrder, snapshot: Snapshot) -> Lines:
    """Return the lines that the snapshot keeps for this order, up to date."""
    lines: Lines | None = snapshot.caches.get(order)
    if lines is None:
        lines = snapshot.caches[order] = Lines(order)
    lines.catch_up(snapshot)
    return lines
