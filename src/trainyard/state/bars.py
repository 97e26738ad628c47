"""Who may not start where: nodes that are reserved for others, now or before a job would be off them."""

from __future__ import annotations

from math import inf

from trainyard.model.reservation import Reservation
from trainyard.model.terms import NO_TERMS
from trainyard.state.record import Record

Window = tuple[float, float, str, int]  # from, to, tenant, nodes as a bit mask


class Bars:
    """The reservations of a snapshot, as bit masks of nodes."""

    __slots__ = ("made", "windows")

    def __init__(self, windows: list[Window], made: tuple[Reservation, ...]) -> None:
        self.windows = windows
        self.made = made  # the same with their names

    def of(self, record: Record, now_s: float, runs_s: float | None = None) -> int:
        """Return the nodes that a job may not start on now, if it runs so long (not said: as requested).

        Before a reservation begins, only those jobs are kept away that cannot be stopped and may not be over.
        """
        mask, job = 0, record.job
        free_at_s = now_s if job.preemptible else now_s + _longest_s(record, now_s, runs_s)
        for from_s, to_s, tenant, nodes in self.windows:
            if from_s <= free_at_s and now_s < to_s and (not tenant or tenant != job.tenant):
                mask |= nodes
        return mask

    def nobodys(self, now_s: float) -> int:
        """Return the nodes that nobody may use at a moment."""
        mask = 0
        for from_s, to_s, tenant, nodes in self.windows:
            if from_s <= now_s < to_s and not tenant:
                mask |= nodes
        return mask


def _longest_s(record: Record, now_s: float, runs_s: float | None) -> float:
    """How long a job may still run: it is not believed, only its time limit is; a trace's job has none."""
    if record.job.terms is None:
        return record.remaining_s(now_s) if runs_s is None else runs_s
    limit_s = (record.job.terms or NO_TERMS).time_limit_s
    return limit_s - record.executed_s(now_s) if limit_s < inf else inf
