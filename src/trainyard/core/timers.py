"""What becomes due by itself: time limits, longest waits, back-offs, beginnings and ends of reservations."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from trainyard.core.leaving import wind_up
from trainyard.core.parking import unpark
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

if TYPE_CHECKING:
    from trainyard.core.yard import Yard


class Timers:
    """A heap of moments at which to look at a job, or at all reservations (no job)."""

    def __init__(self) -> None:
        self.due_s = inf  # the next moment
        self._heap: list[tuple[float, str]] = []

    def at(self, time_s: float, job_id: str = "") -> None:
        """Look then."""
        if time_s < inf:
            heappush(self._heap, (time_s, job_id))
            self.due_s = self._heap[0][0]

    def entries(self) -> list[tuple[float, str]]:
        """Return all moments with the jobs that they are about, in order."""
        return sorted(self._heap)

    def restore(self, entries: list[tuple[float, str]]) -> None:
        """Begin with these."""
        self._heap = sorted(entries)
        self.due_s = self._heap[0][0] if self._heap else inf

    def copy(self) -> Timers:
        """Return an independent copy."""
        twin = Timers()
        twin.restore(self._heap)
        return twin

    def limit(self, record: Record) -> None:
        """A job with terms starts: look at it when it has run for as long as it may."""
        limit_s = (record.job.terms or NO_TERMS).time_limit_s
        self.at(max(record.given_since + limit_s - record.executed, record.given_since), record.job_id)

    def arm(self, record: Record) -> None:
        """Look at a job whenever something about it may become due: it is new, changed, or was restored."""
        terms, trouble = record.job.terms or NO_TERMS, record.trouble
        if record.first_start_s is None:
            self.at(record.arrival_s + terms.max_wait_s, record.job_id)
        if record.state is State.RUNNING:
            self.limit(record)
        if trouble is not None and trouble.until_s:
            self.at(trouble.until_s, record.job_id)

    def fire(self, yard: Yard, now: float) -> None:
        """Do whatever is due."""
        heap, turns = self._heap, False
        while heap and heap[0][0] <= now:
            job_id = heappop(heap)[1]
            self.due_s = heap[0][0] if heap else inf
            record = yard.find(job_id)
            if record is not None:
                _look(yard, record, now)
            turns |= not job_id
        if turns:  # once, however often somebody asked for it
            yard.conditions.turn(yard, now)
        self.due_s = heap[0][0] if heap else inf


def _look(yard: Yard, record: Record, now: float) -> None:
    """Is the time of this job up, or its back-off over?"""
    terms = record.job.terms or NO_TERMS
    ending = record.trouble is not None and record.trouble.ending is not None
    if record.state is State.RUNNING and record.executed_s(now) >= terms.time_limit_s:
        record.troubles().blame("time_limit", f"it has run for {terms.time_limit_s:g} s")
        wind_up(yard, record, now, State.FAILED, "its time limit is reached", "stop")
    elif record.first_start_s is None and now >= record.arrival_s + terms.max_wait_s and not ending:
        record.troubles().blame("max_wait", f"not started in {terms.max_wait_s:g} s")
        yard.finish(now, record, State.FAILED, f"not started in {terms.max_wait_s:g} s")
    else:
        unpark(yard, record, now)
