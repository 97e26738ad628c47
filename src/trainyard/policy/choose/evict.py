"""A job of a higher class that finds no place although there are GPUs enough: others make room for it.

GPUs that are free may lie on the wrong nodes, or without the CPUs and memory that the job needs. Then those
of the lowest class stop, those first that lose least, until it fits; whoever is not in the way goes on, and
whoever was stopped runs elsewhere if there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Mask
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.choose.admit import Admission
from trainyard.policy.choose.ledger import Candidate
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.policy.stages import Stages
from trainyard.policy.tune.proportional import proportional_request
from trainyard.state.loss import lost_gpu_s
from trainyard.state.record import Record

Changes = Mapping[str, Allocation | None]


def make_room(admission: Admission, placeless: Mask) -> None:
    """Draft that jobs which found no place run in place of others of a lower class, as far as that helps."""
    admission.selection.barred = None  # they are ranked once more, too
    listed = admission.in_classes()[0]
    eviction, hopeless = _Eviction(admission, listed), set[tuple[object, ...]]()
    for c in listed:
        asks = c.record.job.kind, c.needs, c.record.job.tenant, c.grade
        if placeless[c.record.row] and asks not in hopeless and not eviction.has(c) and not eviction.fit(c):
            hopeless.add(asks)


class _Eviction:
    """Tries who has to go for whom, on a draft."""

    def __init__(self, admission: Admission, listed: list[Candidate]) -> None:
        self.policy: Stages = admission.selection.policy
        self.draft: Draft = admission.draft
        self.tenants = admission.tenants
        self.listed = listed

    def has(self, c: Candidate) -> Allocation | None:
        """What a job has by the draft."""
        return self._in(self.draft.changes, c.record)

    def fit(self, c: Candidate) -> bool:
        """Let a job run at its smallest in place of others; False, and nothing changes, if it cannot."""
        draft, before, gone = self.draft, self.draft.changes.copy(), list[Candidate]()
        for victim in self._victims(c):
            draft.release(victim.record.job_id)
            gone.append(victim)
            if self._allowed(draft.changes, c.record, c.needs) and self._start(c.record, c.needs):
                self._spare(gone, before)
                return True
        if gone:
            draft.rewrite(before)
        return False

    def _victims(self, c: Candidate) -> list[Candidate]:
        """Jobs of a lower class that may be stopped: the lowest first, of these who loses least."""
        view = self.draft.view
        lower = [v for v in self.listed if v.grade > c.grade and not v.spared and self.has(v)]
        loss = {v.record: lost_gpu_s(view, v.record) for v in lower}  # 0 of those that only begin
        return sorted(lower, key=lambda v: ([-part for part in v.grade], loss[v.record]))

    def _spare(self, gone: list[Candidate], before: Changes) -> None:
        """Give back what turned out not to be in the way, the dearest first; let others run elsewhere."""
        draft = self.draft
        for victim in reversed(gone):
            job_id, had = victim.record.job_id, self._in(before, victim.record)
            assert had is not None
            if not self._allowed(draft.changes, victim.record, had.gpus):
                continue
            if self._is_free(had):
                changes = {**draft.changes, job_id: had}
                if job_id not in before:
                    del changes[job_id]
                draft.rewrite(changes)
            else:
                self._start(victim.record, had.gpus)

    def _is_free(self, had: Allocation) -> bool:
        """Whether the draft leaves all of this."""
        room, nodes = self.draft.room, self.draft.view.nodes
        for share in had.shares:
            gpus, cpus, memory_gb = room.at(nodes.index[share.node])
            if gpus < share.gpus or cpus + CPUS_GB < share.cpus or memory_gb + CPUS_GB < share.memory_gb:
                return False
        return True

    def _start(self, record: Record, gpus: int) -> bool:
        draft, find = self.draft, self.policy.place.find
        return any(draft.try_(find, request) is not None for request in self._requests(record, gpus))

    def _requests(self, record: Record, gpus: int) -> Iterator[Request]:
        """As the tune stage likes, then plainly."""
        yield self.policy.tune.request(self.draft.view, record.job, gpus, record.type_index)
        if not self.policy.tune.by_gpus:
            yield proportional_request(record.job, gpus, record.type_index)

    def _allowed(self, changes: Changes, record: Record, gpus: int) -> bool:
        """Whether the tenant of a job may have so many more."""
        tenant = self.tenants.get(record.job.tenant)
        if tenant is None or tenant.limit is None:
            return True
        others = (r for r in self.draft.view.table.records if r.job.tenant == tenant.name)
        held = (self._in(changes, r) for r in others if r is not record)
        return gpus + sum(a.gpus for a in held if a is not None) <= tenant.limit

    def _in(self, changes: Changes, record: Record) -> Allocation | None:
        job_id = record.job_id
        return changes[job_id] if job_id in changes else self.draft.view.target.get(job_id)
