"""Regular wake-ups, for stages that want to be asked at fixed times."""

from __future__ import annotations

from math import floor, inf

from trainyard.model.tolerance import COUNT
from trainyard.policy.stages import Changes
from trainyard.state.snapshot import Snapshot


class Period:
    """Wakes a policy at every multiple of some seconds, as long as anything runs."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return the next multiple, if anything runs from now on."""
        stays = any(job_id not in changes for job_id in snapshot.target)
        if not stays and not any(changes.values()):
            return inf
        return (floor(snapshot.now_s / self.period_s + COUNT) + 1) * self.period_s
