"""Admit: what priorities, tenants, allowed sizes and jobs that must not stop make of any ranking and shapes.

It stands between rank and shape, and again between shape and choose, so that no stage has to know of it.
Jobs are put into classes: first those that must stay as they are, then those within their tenant's guarantee,
then all others, which borrow; inside the last two a higher priority goes first, then the order decides.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import by_speed
from trainyard.model.kind import Kind
from trainyard.model.refusal import Refusal
from trainyard.model.tolerance import PART
from trainyard.policy.choose.ledger import Candidate, Gpus, Ledger, cut
from trainyard.policy.choose.selection import Selection
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Shapes
from trainyard.state.capacity import held_by_type
from trainyard.state.jobs import Column
from trainyard.state.loss import lost_gpu_s
from trainyard.state.record import Record

ENTITLED, BORROWS = 1, 2  # grades; below are those that must stay


class Admission:
    """Who may have what, in one decision."""

    def __init__(self, selection: Selection, draft: Draft) -> None:
        self.selection = selection
        self.draft = draft
        self.order, self.size = selection.policy.order, selection.policy.size
        self.snapshot = snapshot = selection.snapshot
        self.tenants = snapshot.nodes.cluster.tenants
        self.candidates: list[Candidate] = []
        self._held: list[Gpus] = held_by_type(snapshot).tolist()
        self._curves: dict[tuple[Kind, int], Floats] = {}
        for record in snapshot.table.records:
            if record.given and not record.job.preemptible:
                selection.stay[record.row] = True

    # -- between rank and shape ---------------------------------------------------------------------------

    def ranked(self) -> Ints:
        """Return the rows that shapes are chosen for: class by class, nobody whom a limit keeps waiting."""
        self.candidates = []
        listed, ledger = self.in_classes()
        nobody_passes = not self.order.preemptive and self.order.fill != "greedy"
        for c in listed:
            if not c.gpus and ledger.quota.left(c.record.job) < c.needs:
                self.over_limit(c)
                continue
            if not c.gpus:
                there = ledger.most(c, [c.needs])
                if nobody_passes and not there:
                    break
                ledger.give(c, there or [0])
            self.candidates.append(c)
        return self._rows()

    def in_classes(self) -> tuple[list[Candidate], Ledger]:
        """Return all jobs that the order ranks, and all that must stay, class by class.

        Those before the ones that borrow are counted in the ledger, at their smallest.
        """
        rows, table, stay = self.order.rank(self.snapshot), self.snapshot.table, self.selection.stay
        if not self.order.preemptive:
            running = self.selection.given.nonzero()[0]
            rows = np.concatenate([running[np.argsort(table.column(Column.SEQ)[running])], rows])
        if self.selection.barred is not None:
            rows = rows[~self.selection.barred[rows]]
        listed = [
            self._candidate(table.records[row])
            for row in dict.fromkeys([*stay.nonzero()[0].tolist(), *rows.tolist()])
        ]
        listed.sort(key=lambda c: (not c.fixed, not c.spared, -c.record.job.priority))
        ledger = Ledger(self.snapshot, by_type=False)
        for c in listed:
            c.has = [0]
            c.grade = self._grade(c, ledger)
        return sorted(listed, key=lambda c: c.grade), ledger

    def _grade(self, c: Candidate, ledger: Ledger) -> tuple[int, int]:
        """Return the class of a job.

        Without preemption it is entitled even if there is no room for it: nobody who borrows may pass it.
        """
        job, quota = c.record.job, ledger.quota
        if c.spared:
            quota.spend(job, c.record.given)
            ledger.give(c, [c.record.given if c.fixed else c.needs])
            return 0, int(not c.fixed)
        there = ledger.most(c, [c.needs])
        if (not there and self.order.preemptive) or not quota.entitled(job, c.needs):
            return BORROWS, -job.priority
        ledger.give(c, there or [0])
        return ENTITLED, -job.priority

    def _candidate(self, record: Record) -> Candidate:
        job, needs = record.job, self.size.needs(record.job)
        if job.sizes:
            needs = job.sizes[min(bisect_left(job.sizes, needs), len(job.sizes) - 1)]
        tenant = self.tenants.get(job.tenant)
        if tenant is not None and tenant.limit is not None and needs > tenant.limit:
            needs = job.allowed(tenant.limit) or needs
        fixed = bool(self.selection.stay[record.row])
        return Candidate(
            record, needs, fixed=fixed, spared=fixed or bool(record.given and not self.order.preemptive)
        )

    def over_limit(self, c: Candidate) -> None:
        """Note that a limit keeps a job waiting, if somebody asked."""
        if self.draft.why is not None:
            tenant = self.tenants[c.record.job.tenant]
            said = f"needs {c.needs} GPU{'s' * (c.needs != 1)}; tenant {tenant.name} may have {tenant.limit}"
            why = Refusal(
                "limit", c.needs, c.record.job.gpu_type, said=f"{said}, and others of it come first"
            )
            self.draft.why[c.record.job_id] = why

    # -- between shape and choose -------------------------------------------------------------------------

    def within(self, shapes: Shapes) -> tuple[Ints, Shapes]:
        """Return rows and shapes that break no rule: who goes first runs, sizes as near as may be."""
        typed = shapes.by_type is not None
        ledger = Ledger(self.snapshot, typed)
        wanted = (
            shapes.by_type.tolist() if shapes.by_type is not None else [[n] for n in shapes.gpus.tolist()]
        )
        servers = shapes.servers.tolist() if shapes.servers is not None else [0] * len(wanted)
        for c, gpus, some in zip(self.candidates, wanted, servers, strict=True):
            c.wanted, c.has, c.servers = gpus, [0] * len(gpus), some
            if c.spared and (c.fixed or not any(gpus)):
                c.wanted, c.servers = self._holds(c, typed), 0
        self._run(ledger)
        for c in self.candidates:
            if c.gpus and (more := ledger.most(c, c.wanted)):
                ledger.give(c, more)
        if not self.size.whole_gangs:
            self._refill(ledger)
        return self._rows(), self._shapes(shapes)

    def _holds(self, c: Candidate, typed: bool) -> Gpus:
        return self._held[c.record.row] if typed else [c.record.given]

    def _run(self, ledger: Ledger) -> None:
        """Let jobs run at their smallest, class by class, as far as there is room.

        Those that the size stage gives nothing come last in their class, and only if a lower class gets some.
        """
        lowest = max((c.grade for c in self.candidates if any(c.wanted)), default=(0, 0))
        first = [c for c in self.candidates if c.grade[0] < BORROWS]
        borrow = [c for c in self.candidates if c.grade[0] >= BORROWS]
        for part in (0, 1):
            for grade, group in groupby(borrow if part else first, key=lambda c: c.grade):
                for c in sorted(group, key=lambda c: not any(c.wanted)):
                    if any(c.wanted) or grade < lowest:
                        self._begin(ledger, c)
            if not part:
                borrow = self._by_loss(borrow, first, sum(ledger.left))
        self.candidates = first + borrow

    def _begin(self, ledger: Ledger, c: Candidate) -> None:
        if c.fixed:
            ledger.give(c, c.wanted)
            return
        there = ledger.most(c, c.wanted) or ledger.most(c, self._anywhere(ledger, c))
        if there:
            ledger.give(c, cut(there, c.needs))

    def _anywhere(self, ledger: Ledger, c: Candidate) -> Gpus:
        """Return the GPUs that a job needs, of one type if there is one with room, else of several."""
        if not ledger.by_type:
            return [c.needs]
        own, none = c.record.type_index, [0] * len(ledger.left)
        types = [
            t for t in (by_speed(self.snapshot.nodes) if own < 0 else [own]) if self._speed(c, t, c.needs)
        ]
        for type_ in types:
            if ledger.left[type_] >= c.needs:
                return [c.needs if t == type_ else 0 for t in range(len(none))]
        left = c.needs
        for type_ in types:
            none[type_] = min(left, ledger.left[type_])
            left -= none[type_]
        return none

    def _by_loss(self, borrow: list[Candidate], first: list[Candidate], left: int) -> list[Candidate]:
        """Where borrowers have to stop for jobs that are entitled to start, who loses least stops first."""
        running = [c for c in borrow if c.record.given]
        asked = any(c.grade[0] == ENTITLED and c.gpus and not c.record.given for c in first)
        if not asked or sum(c.needs for c in running) <= left:
            return borrow
        loss = {c.record: lost_gpu_s(self.snapshot, c.record) for c in running}
        return sorted(borrow, key=lambda c: (c.grade, -loss.get(c.record, -1.0)))

    def _refill(self, ledger: Ledger) -> None:
        """Let jobs that gain by it have what others were given but may not have, step by step."""
        budget = sum(sum(c.wanted) - c.gpus for c in self.candidates)
        growing = [c for c in self.candidates if c.gpus and not c.fixed and c.record.job.elastic]
        while growing and budget > 0:
            still = []
            for c in growing:
                had = c.gpus
                if self._larger(ledger, c, budget):
                    budget -= c.gpus - had
                    still.append(c)
            growing = still

    def _larger(self, ledger: Ledger, c: Candidate, budget: int) -> bool:
        """Let a job have its next size, if it gains by it and there is room; return whether it does."""
        job, gpus = c.record.job, c.gpus
        size = job.sizes[bisect_left(job.sizes, gpus + 1)] if gpus < job.most_gpus and job.sizes else gpus + 1
        type_ = max(range(len(c.has)), key=lambda t: c.has[t])
        more = size - gpus
        if size > min(job.most_gpus, ledger.allowance(c)) or more > min(budget, ledger.left[type_]):
            return False
        on = type_ if ledger.by_type else c.record.type_index
        on = by_speed(self.snapshot.nodes)[0] if on < 0 else on
        if self._speed(c, on, size) <= self._speed(c, on, gpus) * (1 + PART):
            return False
        ledger.give(c, [n + more if t == type_ else n for t, n in enumerate(c.has)])
        return True

    def _speed(self, c: Candidate, type_: int, gpus: int) -> float:
        job = c.record.job
        curve = self._curves.get((job.kind, type_))
        if curve is None:
            curve = self._curves[job.kind, type_] = self.snapshot.speed.curve(job, type_, job.most_gpus)
        return float(curve[gpus])

    def _rows(self) -> Ints:
        return np.array([c.record.row for c in self.candidates], dtype=np.int64)

    def _shapes(self, shapes: Shapes) -> Shapes:
        has = np.array([c.has for c in self.candidates], dtype=np.int64)
        servers = None
        if shapes.servers is not None:
            scaled = [
                max(1, round(c.servers * c.gpus / sum(c.wanted))) if c.servers else 0 for c in self.candidates
            ]
            servers = np.array(scaled, dtype=np.int64)
        return Shapes(has.sum(axis=1), servers, None if shapes.by_type is None else has)
