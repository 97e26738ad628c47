"""The queue: waiting jobs in order of submission."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter

from trainyard.state.record import Record

by_seq = attrgetter("seq")


class Queue:
    """Jobs without an allocation, in order of submission. Taking the first one costs nothing."""

    __slots__ = ("_entries", "_first")

    def __init__(self) -> None:
        self._entries: list[Record] = []
        self._first = 0  # entries before this one are gone

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def __iter__(self) -> Iterator[Record]:
        rest = iter(self._entries)
        rest.__setstate__(self._first)  # type: ignore[attr-defined]  # a generator takes longer to begin
        return rest

    def head(self) -> Record:
        """Return the first of all; there must be one."""
        return self._entries[self._first]

    def add(self, record: Record) -> None:
        """Insert in order of submission."""
        entries = self._entries
        if not entries or entries[-1].seq < record.seq:
            entries.append(record)
        else:
            insort(entries, record, lo=self._first, key=by_seq)

    def remove(self, record: Record) -> None:
        """Take out; the job must be there."""
        entries, first = self._entries, self._first
        if entries[first] is not record:
            del entries[bisect_left(entries, record.seq, lo=first, key=by_seq)]
            return
        self._first = first = first + 1
        if first * 2 > len(entries):
            del entries[:first]
            self._first = 0
