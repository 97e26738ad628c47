"""Why does a job wait? Whoever refuses a job says so in the draft; the rest is told from what is left."""

from __future__ import annotations

from trainyard.model.refusal import Refusal
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Stages
from trainyard.state.record import Record


def found_no_place(policy: Stages, draft: Draft, record: Record) -> None:
    """Note that the place stage found no nodes for a job, if somebody asked and it does not lack GPUs."""
    if draft.why is not None and _needs(policy, record) <= _free(draft, record.type_index):
        draft.why[record.job_id] = _no_place(policy, draft, record)


def _no_place(policy: Stages, draft: Draft, record: Record) -> Refusal:
    particular = record.job.particular or not policy.tune.by_gpus
    said = "with the CPUs and memory that it needs" if particular else "where it could use them"
    free = _free(draft, record.type_index)
    return Refusal("place", _needs(policy, record), record.job.gpu_type, free, said=said)


def refuse_rest(policy: Stages, draft: Draft) -> None:
    """Say of every job that has to wait why, in the order in which the policy would serve them."""
    changes, records = draft.changes, draft.view.table.records
    told, draft.why = draft.why or {}, {}
    for row in policy.order.rank(draft.view).tolist():
        record = records[row]
        job_id = record.job_id
        waits = changes[job_id] is None if job_id in changes else not record.given
        if waits:
            draft.why[job_id] = told.get(job_id) or _reason(policy, draft, record)


def _reason(policy: Stages, draft: Draft, record: Record) -> Refusal:
    assert draft.why is not None
    order, needs, free = policy.order, _needs(policy, record), _free(draft, record.type_index)
    ahead, head = len(draft.why), next(iter(draft.why), "")
    if needs > free:
        return Refusal("room", needs, record.job.gpu_type, free, ahead)
    if ahead and order.fill == "strict" and not order.preemptive:
        return Refusal("behind", needs, record.job.gpu_type, free, ahead, head)
    if policy.size.refusal:
        return Refusal("size", needs, record.job.gpu_type, free, ahead, said=policy.size.refusal)
    return _no_place(policy, draft, record)


def _needs(policy: Stages, record: Record) -> int:
    return record.gpus if policy.size.whole_gangs else record.job.least_gpus


def _free(draft: Draft, type_index: int) -> int:
    room, nodes = draft.room, draft.view.nodes
    if type_index < 0:
        return room.total
    return sum(gpus for gpus, type_ in zip(room.gpus, nodes.type_of, strict=True) if type_ == type_index)
