"""Jobs of unknown length: what is believed of them, and when that has to be looked at again.

A belief is due when the seconds a job has executed reach 60, 120, 240 and so on, and when its predicted end
has come without it. The next decision revises what is due; what a job has done stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from trainyard.model.estimate import told
from trainyard.state.history import History
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

DONE, FAILED = State.DONE, State.FAILED
FEW = 1024
Due = tuple[float, int, str]  # when, number of the entry, job
LEAST_LEFT_S = 1.0  # of work, of a job that is not over


class Lengths:
    """The beliefs of one yard; a job whose length was told has none."""

    def __init__(self) -> None:
        self.history: History | None = History()  # None: nobody asks for it, and nothing is kept
        self.due: list[tuple[float, int, Record]] = []  # a heap: when, number of the entry
        self.noted = 0  # entries so far
        self._most = FEW  # entries, before the void ones are thrown away

    def begin(self, record: Record, done: float = 0.0) -> None:
        """A job came whose length nobody told; it may have done something before."""
        history = self.history or History()
        length = record.begin_length(history.estimate(record.job, done / record.reference_rate))
        length.done = length.saved = done
        self._believe(record, done)

    def begin_again(self, record: Record, total: float) -> None:
        """A job that was over goes on from its last checkpoint, with so much to do in all (0: who knows)."""
        assert record.length is not None
        done = record.length.saved
        self.begin(record, done)
        if total:
            set_total(record, total)

    def set_done(self, record: Record, done: float) -> None:
        """A job said how much it has done; one that did more than was believed to be all has more to do."""
        length = record.length
        if length is None:
            record.remaining = max(0.0, record.total - done)
        else:
            length.done = done
            length.saved = min(length.saved, done)
            if done >= record.total and not length.known:
                history = self.history or History()
                length.estimate = history.estimate(record.job, done / record.reference_rate)
                self._believe(record, done)
            _count_from(record, record.total)
        record.saved = max(record.saved, record.remaining)

    def watch(self, record: Record) -> None:
        """A run began, or something about it changed: note when its belief is due."""
        length = record.length
        if length is None:
            return
        self.noted = length.noted = self.noted + 1  # what was noted before is void
        if length.known or record.start < 0:
            return
        look_s = record.given_since + length.look_s - record.executed
        end_s = record.since + record.remaining / record.rate
        heappush(self.due, (min(look_s, end_s), length.noted, record))
        if len(self.due) > self._most:
            self.due = [entry for entry in self.due if _counts(*entry[1:])]
            heapify(self.due)
            self._most = max(FEW, 2 * len(self.due))

    def revise(self, now: float, changed: list[Record]) -> None:
        """Look again at every belief that is due, and note whose was; who stops jobs asks for it before."""
        late: list[Record] = []
        while self.due and self.due[0][0] <= now:
            _, number, record = heappop(self.due)
            if _counts(number, record):
                late.append(record)
        for record in late:
            length, history = record.length, self.history or History()
            assert length is not None
            done = record.done_at(now)
            length.estimate = history.estimate(record.job, done / record.reference_rate)
            while length.look_s <= record.executed_s(now):
                length.look_s *= 2.0
            self._believe(record, done)
            self.watch(record)
        changed.extend(late)

    def entries(self) -> list[Due]:
        """Return when beliefs are due, number of the entry, and the job, in order."""
        return [(at, number, r.job_id) for at, number, r in sorted(self.due) if _counts(number, r)]

    def restore(
        self, entries: Iterable[tuple[float, int, str]], of: Mapping[str, Record], noted: int
    ) -> None:
        """Go on with these."""
        self.due = [(at, number, of[job_id]) for at, number, job_id in entries]
        self.noted = noted

    def ended(self, record: Record, now: float, state: State) -> None:
        """A job is over: now its length is known, and tells of others."""
        done = record.done_at(now)
        if record.length is not None and state in (DONE, FAILED) and done > 0:
            set_total(record, done)
            record.remaining = record.rate = 0.0
        if self.history is not None:
            self.history.add(record.job, done / record.reference_rate)

    def _believe(self, record: Record, done: float) -> None:
        """Write down what follows from the estimate; what is left counts from the record's `since`."""
        assert record.length is not None
        estimate, rate = record.length.estimate, record.reference_rate
        total = max(estimate.mean * rate, done + LEAST_LEFT_S * rate)
        _count_from(record, total)


def _counts(number: int, record: Record) -> bool:
    """Whether an entry is the last one of a run that goes on."""
    return record.start >= 0 and record.length is not None and record.length.noted == number


def set_total(record: Record, total: float) -> None:
    """Somebody who knows told the length of a job, in samples."""
    length = record.length
    if length is None:
        done, saved = record.total - record.remaining, record.total - record.saved
        length = record.begin_length(told(0.0))
        length.done, length.saved = done, saved
    length.estimate = told(total / record.reference_rate)
    _count_from(record, total)


def _count_from(record: Record, total: float) -> None:
    length = record.length
    assert length is not None
    record.total, record.ideal_s = total, total / record.reference_rate
    record.remaining = max(0.0, total - length.done)
    record.saved = max(0.0, total - length.saved)
