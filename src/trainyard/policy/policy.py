"""A policy: four stages, asked in turn, make one plan out of one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.model.allocation import Plan
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.choose.starts import Starts
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.place.pack import Pack
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.stages import Changes, Order, Place, Size, Tune
from trainyard.policy.tune.proportional import Proportional
from trainyard.state.snapshot import Snapshot


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
        changes, notes = self._select(snapshot)
        if changes or self.tune.retunes:
            changes = self.tune.share(snapshot, changes)
        if not (changes or notes or self.size.periodic):
            return snapshot.unchanged
        wakes = self.order.wakes(snapshot, changes) + self.size.wakes(snapshot, changes)
        return Plan(snapshot.target, changes, wakes, notes)

    def _select(self, snapshot: Snapshot) -> tuple[Changes, Mapping[str, Any]]:
        """Return who starts, stops, moves or changes size, and what the stages say of it."""
        if self.order.preemptive or not isinstance(self.size, Fixed):
            selection = Reselection(self, self.tune.ground(snapshot))
            return selection.run(), selection.notes
        if snapshot.free.total and len(snapshot.table.jobs) > len(snapshot.target):
            return Starts(self, self.tune.ground(snapshot)).run(), {}
        return {}, {}
