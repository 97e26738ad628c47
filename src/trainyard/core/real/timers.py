"""What becomes due by itself: time limits, longest waits, back-offs, beginnings and ends of reservations."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import State
from trainyard.state.record import Record


class Timers:
    """A heap of moments at which to look at a job, or at all reservations (no job)."""

    def __init__(self) -> None:
        self.due_s = inf  # the next moment
        self._heap: list[tuple[float, str]] = []
        self._there: set[tuple[float, str]] = set()  # the same, to ask for nothing twice

    def at(self, time_s: float, job_id: str = "") -> None:
        """Look then."""
        if time_s < inf and (time_s, job_id) not in self._there:
            self._there.add((time_s, job_id))
            heappush(self._heap, (time_s, job_id))
            self.due_s = self._heap[0][0]

    def pop(self) -> str:
        """Take out what is due next; return the job that it is about."""
        entry = heappop(self._heap)
        self._there.remove(entry)
        self.due_s = self._heap[0][0] if self._heap else inf
        return entry[1]

    def entries(self) -> list[tuple[float, str]]:
        """Return all moments with the jobs that they are about, in order."""
        return sorted(self._heap)

    def restore(self, entries: list[tuple[float, str]]) -> None:
        """Begin with these."""
        self._heap = sorted(entries)
        self._there = set(self._heap)
        self.due_s = self._heap[0][0] if self._heap else inf

    def copy(self) -> Timers:
        """Return an independent copy."""
        twin = Timers()
        twin.restore(self._heap)
        return twin

    def limit(self, record: Record) -> None:
        """A job with terms starts: look at it when it has run for as long as it may."""
        self.at(limit_at(record), record.job_id)

    def arm(self, record: Record) -> None:
        """Look at a job whenever something about it may become due: it is new, changed, or was restored."""
        trouble = record.trouble
        if record.first_start_s is None:
            self.at(waits_until(record), record.job_id)
        if record.state is State.RUNNING:
            self.limit(record)
        if trouble is not None and trouble.until_s:
            self.at(trouble.until_s, record.job_id)


def limit_at(record: Record) -> float:
    """When a job that runs will have run for as long as it may."""
    limit_s = (record.job.terms or NO_TERMS).time_limit_s
    return max(record.given_since + limit_s - record.executed, record.given_since)


def waits_until(record: Record) -> float:
    """When a job that never started has waited for as long as it wants to."""
    again_s = 0.0 if record.trouble is None else record.trouble.again_s
    return max(record.arrival_s, again_s) + (record.job.terms or NO_TERMS).max_wait_s
