"""A policy: four stages, asked in turn, make one plan out of one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from trainyard.model.allocation import Plan
from trainyard.model.arrays import Ints
from trainyard.policy.choose.in_line import start_all, swap
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.choose.starts import start_waiting
from trainyard.policy.draft import Draft
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.place.pack import Pack
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.stages import Changes, Order, Place, Size, Tune
from trainyard.policy.tune.proportional import Proportional
from trainyard.state.snapshot import Snapshot

UNCHANGED = Plan()
NO_CHANGES: Changes = {}
new_tuple = tuple.__new__  # Plan(...) takes twice as long
NOTHING_SAID: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Policy:
    """Who goes first, how big, where, and with how much CPU and memory."""

    name: str = "fifo"
    order: Order = field(default_factory=Fifo)
    size: Size = field(default_factory=Fixed)
    place: Place = field(default_factory=Pack)
    tune: Tune = field(default_factory=Proportional)
    # What the stages say of themselves, looked up once.
    _gangs: bool = field(init=False, repr=False, compare=False)  # every job runs as requested or not at all
    _starts_only: bool = field(init=False, repr=False, compare=False)  # and no running job is disturbed
    _grounds: bool = field(
        init=False, repr=False, compare=False
    )  # other stages see what its tune stage shows
    _shares: bool = field(init=False, repr=False, compare=False)  # CPUs and memory are handed out afterwards
    _wakes: list[Callable[[Snapshot, Changes], float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        gangs = isinstance(self.size, Fixed)
        object.__setattr__(self, "_gangs", gangs)
        object.__setattr__(self, "_starts_only", gangs and not self.order.preemptive)
        object.__setattr__(self, "_grounds", type(self.tune).ground is not Tune.ground)
        object.__setattr__(self, "_shares", type(self.tune).share is not Tune.share)
        awake = [stage.wake_s for stage in (self.order, self.size) if _overrides(stage)]
        object.__setattr__(self, "_wakes", awake)

    def decide(self, snapshot: Snapshot) -> Plan:
        """Return what should run now. Reads the snapshot, changes nothing."""
        changes, notes = NO_CHANGES, NOTHING_SAID
        if not self._starts_only or (
            snapshot.free.total and len(snapshot.table.records) > len(snapshot.target)
        ):
            draft = Draft(self.tune.ground(snapshot) if self._grounds else snapshot)
            try:
                notes = self._choose(draft)
            finally:
                changes = draft.close()
        elif not (self._shares or self._wakes):
            return UNCHANGED
        if self._shares and (changes or self.tune.retunes):
            changes = self.tune.share(snapshot, changes)
        if not (changes or notes or self._wakes):
            return UNCHANGED
        if not self._wakes:
            return new_tuple(Plan, (changes, inf, notes))
        return Plan(changes, min([wake_s(snapshot, changes) for wake_s in self._wakes]), notes)

    def ranked(self, snapshot: Snapshot) -> Ints:
        """Return the rows that sizes are chosen for, first come first."""
        return Reselection(self, Draft(self.tune.ground(snapshot))).ranked()

    def _choose(self, draft: Draft) -> Mapping[str, Any]:
        """Draft the changes by the quickest way that the stages allow; return what they say of it."""
        if self._starts_only:
            start_waiting(self, draft)
            return NOTHING_SAID
        one_type = len(draft.view.nodes.types) == 1
        if self._gangs and one_type and (start_all(self, draft) or swap(self, draft)):
            return NOTHING_SAID
        selection = Reselection(self, draft)
        selection.run()
        return selection.notes


def _overrides(stage: Order | Size) -> bool:
    """Whether the stage ever wants to be woken."""
    return type(stage).wake_s not in (Order.wake_s, Size.wake_s)
