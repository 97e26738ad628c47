"""Trying out sizes: a job that nothing is known of runs for a while at each of a few sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from trainyard.errors import InputError
from trainyard.model.allocation import Allocation
from trainyard.model.limits import MAX_S
from trainyard.policy.bounds import within
from trainyard.policy.stages import Changes
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

EXPLORE_S = 150.0
LEAST_EXPLORE_S = 0.01
ALMOST = 0.999  # rounding must not make a trial last for ever
NEVER = (0.0, 0.0)


def explorer_for(wanted: bool, explore_s: float | None, mode: str) -> Explorer | None:
    """Return an explorer if one is wanted."""
    if explore_s is not None and not wanted:
        raise InputError(f"explore_s={explore_s:g} has no meaning without {mode}; leave it out or add that")
    return Explorer(EXPLORE_S if explore_s is None else explore_s) if wanted else None


class Explorer:
    """Decides which size a job has to try next, from what has been seen of it."""

    def __init__(self, explore_s: float) -> None:
        if explore_s <= 0:
            raise InputError(f"explore_s={explore_s:g} is too short; give seconds above 0")
        within("explore_s", explore_s, LEAST_EXPLORE_S, MAX_S)
        self.explore_s = explore_s

    def next(self, snapshot: Snapshot, row: int, trials: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the first (workers, servers) that has not been tried for long enough."""
        if not snapshot.table.jobs[row].elastic:
            return None
        seen = snapshot.seen(row)
        return next((t for t in trials if seen.get(t, NEVER)[0] < ALMOST * self.explore_s), None)

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when the next job will have run for long enough at its size."""
        of, now_s, next_s = snapshot.table.of, snapshot.now_s, inf
        for job_id, allocation in {**snapshot.target, **changes}.items():
            record = of[job_id]
            if allocation is not None and record.job.elastic:
                size = allocation.gpus, allocation.servers
                lacks_s = self.explore_s - snapshot.seen(record.row).get(size, NEVER)[0]
                end_s = _progresses_s(snapshot, record, allocation) + lacks_s
                if lacks_s > 0 and now_s < end_s < next_s:
                    next_s = end_s
        return next_s


def _progresses_s(snapshot: Snapshot, record: Record, allocation: Allocation) -> float:
    """From when on a job makes progress, if it gets this now."""
    before = snapshot.target.get(record.job_id)
    if before is not None and before.seats == allocation.seats:
        return max(snapshot.now_s, record.since)
    first = record.first_start_s is None
    return snapshot.now_s + (snapshot.rules.start_s if first else snapshot.restart_cost(record.job))
