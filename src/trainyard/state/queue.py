"""The queue: waiting jobs in order of submission."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator


class Queue:
    """Jobs without an allocation, in order of submission. Taking the first one costs nothing."""

    __slots__ = ("_entries", "_first", "blocked", "journal", "lines")

    def __init__(self) -> None:
        self.blocked: str | None = None  # who came first and found no place, if that was found out
        self.lines: object = None  # the same jobs as an order keeps them sorted from decision to decision
        self.journal: list[str] | None = None  # which jobs came or went, if a reader wants to know
        self._entries: list[tuple[float, str]] = []
        self._first = 0  # entries before this one are gone

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def __iter__(self) -> Iterator[str]:
        for i in range(self._first, len(self._entries)):
            yield self._entries[i][1]

    def add(self, seq: float, job_id: str) -> None:
        """Insert in order of submission."""
        if self.journal is not None:
            self.journal.append(job_id)
        entries = self._entries
        if not entries or entries[-1][0] < seq:
            entries.append((seq, job_id))
        else:
            insort(entries, (seq, job_id), lo=self._first)

    def remove(self, seq: float, job_id: str) -> None:
        """Take out; the job must be there."""
        if self.journal is not None:
            self.journal.append(job_id)
        entries = self._entries
        if entries[self._first][0] != seq:
            del entries[bisect_left(entries, (seq, job_id), lo=self._first)]
            return
        self._first += 1
        if self._first * 2 > len(entries):
            del entries[: self._first]
            self._first = 0

    def fork(self) -> Queue:
        """Return an independent copy."""
        twin = Queue()
        twin._entries = self._entries[self._first :]
        return twin
