"""Preemption and elastic sizes: choose anew who runs with how much, and change as little as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trainyard.model.arrays import Ints, Mask
from trainyard.policy.choose.admit import Admission
from trainyard.policy.choose.by_type import as_settled
from trainyard.policy.choose.evict import make_room
from trainyard.policy.choose.fill import fill, fill_gangs
from trainyard.policy.choose.pools import from_pools
from trainyard.policy.choose.realise import Realisation
from trainyard.policy.choose.reasons import given_nothing
from trainyard.policy.choose.selection import Choice, Selection
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Shapes, Stages
from trainyard.state.jobs import Column

C = Column
Chooser = Callable[[Selection, Ints, Shapes], Choice]
# Shapes are chosen anew without the jobs that found no place, even at their smallest, if more stays idle.
IDLE = 0.05


class Reselection:
    """Rank, shape, choose, realise; once more without those that found no place, or that may not stop."""

    def __init__(self, policy: Stages, draft: Draft) -> None:
        self.policy = policy
        self.draft = draft
        self.snapshot = draft.view
        self.selection = Selection(policy, draft.view)
        self.realisation = Realisation(self.selection, draft)
        self.admission = Admission(self.selection, draft) if draft.view.table.bound else None
        self.notes: Mapping[str, Any] = {}  # what the size stage says of the decision

    def run_all(self) -> bool:
        """Draft that every job gets what it asked for; False, and nothing drafted, if one finds no place."""
        table = self.snapshot.table
        in_order = np.argsort(table.column(C.SEQ))
        if self.realisation.place(Choice(in_order, table.column(C.GPUS))) is None:
            return True
        self.draft.undo()
        return False

    def run(self) -> None:
        """Draft who starts, stops, moves or changes size.

        With n active jobs there are at most 2 n + 1 attempts: each but the last adds a job to those that
        stay or to those that are barred, and no job is added to either twice.
        """
        selection = self.selection
        while True:
            self.draft.undo()
            failed = self._attempt()
            if not self.policy.order.preemptive and (stopped := self._stopped()):
                if selection.stay[stopped].all():
                    self.draft.undo()  # no way to go on without them: what runs goes on, nobody starts
                    return
                selection.stay[stopped] = True
            elif failed is None or not self._without_them():
                self._make_room(failed)
                return
            else:
                selection.barred = failed if selection.barred is None else selection.barred | failed

    def _make_room(self, failed: Mask | None) -> None:
        """Let who found no place, now or in an attempt before, run in place of a lower class."""
        barred = self.selection.barred
        placeless = failed if barred is None else barred if failed is None else barred | failed
        if placeless is not None and self.admission is not None and self.policy.order.preemptive:
            make_room(self.admission, placeless)

    def _attempt(self) -> Mask | None:
        """Choose and place; return which jobs found no place, None if all did."""
        policy, selection = self.policy, self.selection
        if self.admission is not None:
            return self._admitted(self.admission)
        if policy.size.whole_gangs and selection.one_type and policy.order.preemptive and not selection.turns:
            choice = fill_gangs(selection)  # steps 1 to 3 at once
        else:
            ranked = selection.ranked()  # 1. rank
            chosen = policy.size.shapes(self.snapshot, ranked)  # 2. shape
            self.notes = chosen.notes
            given_nothing(policy, self.draft, ranked, chosen.shapes)
            choose = self.chooser(chosen.shapes)
            choice = choose(selection, ranked, chosen.shapes)  # 3. choose
        return self.realisation.place(choice)  # 4. realise

    def _admitted(self, admission: Admission) -> Mask | None:
        """Do the same where jobs have to be admitted; whom the chooser passes over found no place either."""
        policy, selection = self.policy, self.selection
        ranked = admission.ranked()  # 1. rank, and who may run at all
        if not ranked.size:
            return self.realisation.place(Choice(ranked, np.zeros(selection.given.size)))
        chosen = policy.size.shapes(self.snapshot, ranked)  # 2. shape
        self.notes = chosen.notes
        rows, shapes = admission.within(chosen.shapes)
        given_nothing(policy, self.draft, rows, shapes)
        choice = self.chooser(shapes)(selection, rows, shapes)  # 3. choose
        missed: Mask = np.zeros(selection.given.size, dtype=np.bool_)
        missed[rows[shapes.gpus > 0]] = True
        missed[choice.rows] = False
        failed = self.realisation.place(choice)  # 4. realise
        if not missed.any():
            return failed
        return missed if failed is None else failed | missed

    def chooser(self, shapes: Shapes) -> Chooser:
        """Return who chooses among jobs of such shapes."""
        if shapes.by_type is not None:
            return as_settled
        return fill if self.selection.one_type else from_pools

    def _stopped(self) -> list[int]:
        """Rows of the running jobs that would be stopped."""
        changes, of = self.draft.changes, self.snapshot.table.of
        return [of[job_id].row for job_id, allocation in changes.items() if allocation is None]

    def _without_them(self) -> bool:
        """Whether to choose again without the jobs that found no place."""
        return self.policy.size.whole_gangs or self.draft.room.total > IDLE * self.snapshot.up_gpus
