"""A policy: four stages, asked in turn, make one plan out of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainyard.model.allocation import Plan
from trainyard.policy.fixed import Fixed
from trainyard.policy.order import Fifo
from trainyard.policy.pack import Pack
from trainyard.policy.proportional import Proportional
from trainyard.policy.reselect import Reselection
from trainyard.policy.snapshot import Snapshot
from trainyard.policy.stages import Changes, Order, Place, Size, Tune
from trainyard.policy.start import Starts


@dataclass(frozen=True, slots=True)
class Policy:
    """Who goes first, how big, where, and with how much CPU and memory."""

    name: str = "fifo"
    order: Order = field(default_factory=Fifo)
    size: Size = field(default_factory=Fixed)
    place: Place = field(default_factory=Pack)
    tune: Tune = field(default_factory=Proportional)

    def decide(self, snapshot: Snapshot) -> Plan:
        """Return what should run now. Reads the snapshot, changes nothing."""
        changes = self._select(snapshot)
        if changes or self.tune.retunes:
            changes = self.tune.share(snapshot, changes)
        if not changes:
            return snapshot.unchanged
        wakes = self.order.wakes(snapshot, changes) + self.size.wakes(snapshot, changes)
        return Plan(snapshot.running, changes, wakes)

    def _select(self, snapshot: Snapshot) -> Changes:
        """Return who starts, stops, moves or changes size."""
        if self.order.preemptive or not isinstance(self.size, Fixed):
            return Reselection(self, self.tune.ground(snapshot)).run()
        if snapshot.free.total and len(snapshot.table.jobs) > len(snapshot.running):
            return Starts(self, self.tune.ground(snapshot)).run()
        return {}
