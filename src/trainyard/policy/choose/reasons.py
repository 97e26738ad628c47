"""Why does a job wait? Whoever refuses a job says so in the draft; the rest is told from what is left."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.model.arrays import Ints
from trainyard.model.refusal import Refusal
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Shapes, Stages
from trainyard.state.record import Record


def found_no_place(policy: Stages, draft: Draft, record: Record) -> None:
    """Note that the place stage found no nodes for a job, if somebody asked and it does not lack GPUs."""
    if draft.why is not None and _needs(policy, record) <= _free(draft, record.type_index):
        draft.why[record.job_id] = _no_place(policy, draft, record)


def _no_place(policy: Stages, draft: Draft, record: Record) -> Refusal:
    needs, free = _needs(policy, record), _free(draft, record.type_index)
    particular = record.job.particular or not policy.tune.by_gpus
    said = "with the CPUs and memory that it needs" if particular else "where it could use them"
    request = policy.tune.request(draft.view, record.job, needs, record.type_index)
    if draft.barred(policy.place.find, request):
        said = "where no reservation keeps them for others"
    return Refusal("place", needs, record.job.gpu_type, free, said=said)


def given_nothing(policy: Stages, draft: Draft, ranked: Ints, shapes: Shapes) -> None:
    """Note which jobs the size stage gave nothing, if somebody asked."""
    if draft.why is not None:
        for row in ranked[shapes.gpus == 0].tolist():
            record = draft.view.table.records[row]
            said = policy.size.refusal or "its size stage gives it nothing now"
            draft.why[record.job_id] = Refusal("size", _needs(policy, record), record.job.gpu_type, said=said)


def reasons(policy: Stages, draft: Draft) -> dict[str, Refusal]:
    """Say of every job that has to wait why, in the order in which the policy would serve them."""
    changes, view, told = draft.changes, draft.view, draft.why or {}
    ranked = [view.table.records[row] for row in policy.order.rank(view).tolist()]
    why: dict[str, Refusal] = {}
    for record in dict.fromkeys([*ranked, *view.waiting]):  # an order may leave some out
        job_id = record.job_id
        waits = changes[job_id] is None if job_id in changes else not record.given
        if waits:
            why[job_id] = _reason(policy, draft, record, told.get(job_id), why)
    return why


def _reason(
    policy: Stages, draft: Draft, record: Record, told: Refusal | None, before: Mapping[str, Refusal]
) -> Refusal:
    order, needs, free = policy.order, _needs(policy, record), _free(draft, record.type_index)
    if told is not None and (told.kind != "size" or needs <= free):
        return told
    ahead, head = len(before), next(iter(before), "")
    if needs > free:
        return Refusal("room", needs, record.job.gpu_type, free, ahead)
    if ahead and order.fill == "strict" and not order.preemptive:
        return Refusal("behind", needs, record.job.gpu_type, free, ahead, head)
    return _no_place(policy, draft, record)


def _needs(policy: Stages, record: Record) -> int:
    return policy.size.needs(record.job)


def _free(draft: Draft, type_index: int) -> int:
    room, nodes = draft.room, draft.view.nodes
    if type_index < 0:
        return room.total
    return sum(gpus for gpus, type_ in zip(room.gpus, nodes.type_of, strict=True) if type_ == type_index)
