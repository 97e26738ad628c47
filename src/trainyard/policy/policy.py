"""A policy: four stages, asked in turn, make one plan out of one snapshot.

Every decision is made in four steps, whichever way is the quickest that the stages allow:

1. rank      who goes first (order stage); where tenants, priorities or sizes matter, who is admitted
2. shape     how big each job should be (size stage)
3. choose    who of them runs, given what there is (`choose/`)
4. realise   on which nodes (place stage), with how much CPU and memory (tune stage), as a draft

Where that leaves nobody running although a job could run, one does (`choose/rescue.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from trainyard.model.allocation import Plan
from trainyard.model.arrays import Ints
from trainyard.model.refusal import Refusal
from trainyard.policy.choose.admitted_starts import start_admitted
from trainyard.policy.choose.in_line import start_all, swap
from trainyard.policy.choose.reasons import reasons
from trainyard.policy.choose.rescue import RESCUED, leaves_nobody, rescue
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.choose.selection import Selection
from trainyard.policy.choose.starts import start_alone, start_waiting
from trainyard.policy.draft import Draft
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.period import Period
from trainyard.policy.place.pack import Pack
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.stages import Changes, Order, Place, Size, Stage, Tune
from trainyard.policy.tune.proportional import Proportional
from trainyard.state.snapshot import Snapshot

new_tuple = tuple.__new__  # Plan(...) takes twice as long
UNCHANGED = Plan()
NOTHING_SAID: Mapping[str, Any] = {}
NOBODY_ASKED: Mapping[str, Refusal] = {}


class Decides(Protocol):
    """What the core needs of a policy: whoever records plans may stand before it."""

    @property
    def order(self) -> Order:
        """Its order stage."""
        ...

    @property
    def decide(self) -> Callable[[Snapshot], Plan]:
        """What makes a plan of a snapshot."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """Who goes first, how big, where, and with how much CPU and memory."""

    name: str = "fifo"
    order: Order = field(default_factory=Fifo)
    size: Size = field(default_factory=Fixed)
    place: Place = field(default_factory=Pack)
    tune: Tune = field(default_factory=Proportional)
    # What the stages say of themselves, looked up once.
    _starts_only: bool = field(init=False, repr=False, compare=False)  # whole gangs, nobody is disturbed
    _idles: bool = field(init=False, repr=False, compare=False)  # and if none can start, nothing is said
    _grounds: bool = field(init=False, repr=False, compare=False)  # others see what its tune stage shows
    _wakes: list[Callable[[Snapshot, Changes], float]] = field(init=False, repr=False, compare=False)
    _improvers: list[Stage] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stages: tuple[Stage, ...] = (self.order, self.size, self.place, self.tune)
        wakes = [stage.wake_s for stage in stages if type(stage).wake_s is not Stage.wake_s]
        wakes += [Period(stage.period_s).wake_s for stage in stages if stage.period_s < inf]
        improvers = [stage for stage in stages if type(stage).improve is not Stage.improve]
        starts_only = self.size.whole_gangs and not self.order.preemptive
        object.__setattr__(self, "_starts_only", starts_only)
        grounds = type(self.tune).ground is not Tune.ground
        object.__setattr__(self, "_idles", starts_only and not (wakes or improvers or grounds))
        object.__setattr__(self, "_grounds", grounds)
        object.__setattr__(self, "_wakes", wakes)
        object.__setattr__(self, "_improvers", improvers)

    def decide(self, snapshot: Snapshot, explain: bool = False) -> Plan:
        """Return what should run now, and why others wait if asked. Reads the snapshot, changes nothing."""
        plain = snapshot.bars is None and snapshot.shuns is None
        if self._idles and not explain and plain and not snapshot.table.bound:
            waiting = len(snapshot.table.records) - len(snapshot.target)
            if not waiting or not snapshot.free.total or self.order.blocked(snapshot):
                if snapshot.target or not waiting:
                    return UNCHANGED
            elif waiting == 1:
                alone = start_alone(self, snapshot)
                if alone:
                    return new_tuple(Plan, (alone, inf, NOTHING_SAID, NOBODY_ASKED))
                if snapshot.target:
                    return UNCHANGED
        draft, why = Draft(self.tune.ground(snapshot) if self._grounds else snapshot, explain), NOBODY_ASKED
        try:
            notes = self._choose(draft)
            if leaves_nobody(draft) and (names := rescue(self, draft)):
                notes = {**notes, RESCUED: names}
            if self._improvers:
                self._improve(snapshot, draft)
            if explain:
                why = reasons(self, draft)
        finally:
            changes = draft.close()
        if self._wakes:
            return Plan(changes, min([wake_s(snapshot, changes) for wake_s in self._wakes]), notes, why)
        return new_tuple(Plan, (changes, inf, notes, why)) if changes or notes or why else UNCHANGED

    def _improve(self, snapshot: Snapshot, draft: Draft) -> None:
        """Let stages change the draft, unless jobs would then begin to use nodes that they may not."""
        found = draft.changes.copy()
        for stage in self._improvers:
            stage.improve(snapshot, draft)
        if draft.trespasses():
            draft.rewrite(found)

    def ranked(self, snapshot: Snapshot) -> Ints:
        """Return the rows that shapes are chosen for, first come first."""
        return Selection(self, self.tune.ground(snapshot)).ranked()

    def _choose(self, draft: Draft) -> Mapping[str, Any]:
        """Draft the changes by the quickest way that the stages allow; return what they say of it."""
        admits = draft.view.table.bound  # tenants, priorities, sizes, jobs that must not stop
        if self._starts_only:
            (start_admitted if admits else start_waiting)(self, draft)
            return NOTHING_SAID
        one_type = len(draft.view.nodes.types) == 1
        if (
            self.size.whole_gangs
            and one_type
            and not admits
            and (start_all(self, draft) or swap(self, draft))
        ):
            return NOTHING_SAID
        selection = Reselection(self, draft)
        selection.run()
        return selection.notes
