"""Whole gangs without preemption where jobs have to be admitted: who waits for a limit is passed."""

from __future__ import annotations

from trainyard.model.allocation import Allocation
from trainyard.model.refusal import Refusal
from trainyard.policy.choose.admit import Admission
from trainyard.policy.choose.ledger import Candidate
from trainyard.policy.choose.quota import Quota
from trainyard.policy.choose.reasons import found_no_place
from trainyard.policy.choose.reservation import Reservation
from trainyard.policy.choose.selection import Selection
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Stages


def start_admitted(policy: Stages, draft: Draft) -> None:
    """Draft which waiting jobs start, class by class."""
    admission, view = Admission(Selection(policy, draft.view), draft), draft.view
    listed, quota, fill = admission.in_classes()[0], Quota(admission.tenants), policy.order.fill
    for c in listed:
        quota.take(c.record.job, c.record.given)
    head: _Head | None = None
    for c in listed:
        job = c.record.job
        if c.record.given:
            continue
        if quota.left(job) < c.needs:
            admission.over_limit(c)
            continue
        request = policy.tune.request(view, job, c.needs, c.record.type_index)
        found = draft.try_(policy.place.find, request)
        if found is not None and (head is None or head.allows(c, found, quota)):
            quota.take(job, c.needs)
        elif found is not None and head is not None:
            draft.take_back()
            if draft.why is not None:
                draft.why[job.job_id] = Refusal("delay", c.needs, head=head.first.record.job_id)
        else:
            found_no_place(policy, draft, c.record)
            if draft.barred(policy.place.find, request):
                continue  # it only waits for the end of a reservation
            if fill == "strict":
                return
            if fill == "easy" and head is None:
                head = _Head(c, Reservation(draft, request, policy.place))


class _Head:
    """The first job that does not fit, and when it can start."""

    def __init__(self, first: Candidate, reserved: Reservation) -> None:
        self.first = first
        self.reserved = reserved

    def allows(self, c: Candidate, found: Allocation, quota: Quota) -> bool:
        """Whether a job may pass: it must leave the head its nodes, and its part of their tenant's limit."""
        record, head = c.record, self.first
        same, left = record.job.tenant == head.record.job.tenant, quota.left(record.job)
        if (
            same
            and left < c.needs + head.needs
            and self.reserved.end_s(record, found) > self.reserved.start_s
        ):
            return False
        return self.reserved.allows(record, found)
