"""Jobs that no policy sees: they are held, it is too early for them, or others have to end first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from trainyard.model.terms import NO_TERMS, When
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

if TYPE_CHECKING:
    from trainyard.core.yard import Yard


def park(yard: Yard, record: Record, now: float) -> None:
    """Take a job away from the policies."""
    if record.row < 0:
        return
    if record.job_id in yard.target:
        yard.untarget(record, now)
    else:
        yard.waiting.remove(record)
    yard.meet(now)
    yard.table.remove(record)
    yard.parked[record.job_id] = record


def unpark(yard: Yard, record: Record, now: float) -> None:
    """Let policies see a job again, if nothing keeps it from being planned any more."""
    trouble = record.troubles()
    if record.row >= 0 or record.state is not State.WAITING or trouble.until_s > now or trouble.unmet:
        return
    del yard.parked[record.job_id]
    yard.meet(now)
    yard.table.add(record)
    yard.waiting.add(record)


def hold(yard: Yard, record: Record, now: float) -> None:
    """Keep a job that has no processes until it is released."""
    park(yard, record, now)
    yard.change(record, State.HELD, now, "held")


def release(yard: Yard, record: Record, now: float) -> None:
    """Let a held job wait again."""
    yard.change(record, State.WAITING, now, "released")
    unpark(yard, record, now)


def await_others(yard: Yard, record: Record, now: float) -> None:
    """Let a job wait for those that it comes after and that are not over."""
    after = (record.job.terms or NO_TERMS).after
    unmet = {first: when for first, when in after.items() if yard.find(first)}
    if unmet:
        yard.over.wait_for(record, unmet)
        park(yard, record, now)
    elif record.trouble is not None:
        record.trouble.unmet = {}


class Over:
    """Jobs that are over, the latest ones: for jobs that come after them, and to try them again."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.records: dict[str, Record] = {}
        self.awaited: dict[str, list[str]] = {}  # job -> those that come after it
        self.wanted = most > 0  # whether anybody asks when a job ends
        self._ended: deque[Record] = deque()  # of whose ends others are being told

    def note(self, yard: Yard, record: Record, now: float) -> None:
        """A job ended: remember it, and tell those that waited for it."""
        if self.most:
            self.records[record.job_id] = record
            if len(self.records) > self.most:
                del self.records[next(iter(self.records))]
        self._ended.append(record)
        if len(self._ended) > 1:
            return  # whoever is at it looks at this one, too: chains may be long
        while self._ended:
            self._tell(yard, self._ended[0], now)
            self._ended.popleft()

    def _tell(self, yard: Yard, record: Record, now: float) -> None:
        for job_id in self.awaited.pop(record.job_id, ()):
            after = yard.find(job_id)
            if after is not None and after.trouble is not None and record.job_id in after.trouble.unmet:
                when = after.trouble.unmet.pop(record.job_id)
                if not met(when, record.state):
                    after.trouble.blame("dependency", f"{record.job_id} is {record.state.value}")
                    yard.finish(now, after, State.CANCELLED, f"job {record.job_id} is {record.state.value}")
                else:
                    unpark(yard, after, now)

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


def met(when: When, state: State) -> bool:
    """Whether a job ended as another one wants it."""
    return when == "any" or (state is State.DONE) == (when == "ok")
