"""Trying out sizes: a job that nothing is known of runs for a while at each of a few sizes."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.errors import InputError
from trainyard.model.allocation import Wakes
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

    def wakes(self, snapshot: Snapshot, changes: Changes) -> Wakes:
        """Return when each job that starts now will have run for long enough at its size."""
        table = snapshot.table
        wakes = []
        for job_id, allocation in changes.items():
            row = table.of[job_id].row
            if allocation is None or not table.jobs[row].elastic:
                continue
            seen = snapshot.seen(row).get((allocation.gpus, allocation.servers), NEVER)
            lacks_s = self.explore_s - seen[0]
            if lacks_s > 0:
                stall_s = max(snapshot.rules.start_s, snapshot.restart_cost(table.jobs[row]))
                wakes.append((job_id, snapshot.now_s + stall_s + lacks_s))
        return tuple(wakes)
