"""Trying out sizes: a job that nothing is known of runs for a while at each of a few sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from trainyard.errors import InputError
from trainyard.policy.stages import Changes
from trainyard.state.snapshot import Snapshot

EXPLORE_S = 150.0
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
            job = of[job_id].job
            if allocation is not None and job.elastic:
                began_s = now_s if job_id in changes else of[job_id].given_since
                ran = (
                    snapshot.seen(of[job_id].row)
                    if job_id in changes
                    else snapshot.observed.seen(job_id, None)
                )
                lacks_s = self.explore_s - ran.get((allocation.gpus, allocation.servers), NEVER)[0]
                stall_s = max(snapshot.rules.start_s, snapshot.restart_cost(job))
                end_s = began_s + stall_s + lacks_s
                if lacks_s > 0 and now_s < end_s < next_s:
                    next_s = end_s
        return next_s
