"""Jobs that are over, the latest ones, and who waits for jobs to be over."""

from __future__ import annotations

from collections import deque

from trainyard.model.terms import When
from trainyard.state.lifecycle import State
from trainyard.state.record import Record


class Over:
    """Jobs that are over, the latest ones: for jobs that come after them, and to try them again."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.records: dict[str, Record] = {}
        self.awaited: dict[str, list[str]] = {}  # job -> those that come after it
        self.wanted = most > 0  # whether anybody asks when a job ends
        self.ended: deque[Record] = deque()  # of whose ends others are being told

    def remember(self, record: Record) -> None:
        """Keep a job that ended, if any are kept."""
        if self.most:
            self.records[record.job_id] = record
            if len(self.records) > self.most:
                del self.records[next(iter(self.records))]

    def copy(self) -> Over:
        """Return an independent copy."""
        twin = Over(self.most)
        twin.records = {job_id: record.copy() for job_id, record in self.records.items()}
        twin.awaited = {first: those.copy() for first, those in self.awaited.items()}
        twin.wanted = self.wanted
        return twin

    def wait_for(self, record: Record, unmet: dict[str, When]) -> None:
        """Remember whom a job waits for."""
        record.troubles().unmet = unmet
        for first in unmet:
            self.awaited.setdefault(first, []).append(record.job_id)
            self.wanted = True


def ended(state: State) -> str:
    """Say how a job ended that others waited for."""
    return "is done" if state is State.DONE else "failed" if state is State.FAILED else "was cancelled"


def met(when: When, state: State) -> bool:
    """Whether a job ended as another one wants it."""
    return when == "any" or (state is State.DONE) == (when == "ok")
