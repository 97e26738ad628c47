"""Why does a job wait? Whoever refuses a job says so in the draft; the rest is told from what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.model.arrays import Ints
from trainyard.model.refusal import Refusal
from trainyard.policy.choose.admit import Admission
from trainyard.policy.choose.selection import Selection
from trainyard.policy.draft import Draft
from trainyard.policy.stages import Shapes, Stages
from trainyard.state.record import Record
from trainyard.state.room import PartlyClosed


def found_no_place(policy: Stages, draft: Draft, record: Record) -> None:
    """Note that the place stage found no nodes for a job, if somebody asked and it does not lack GPUs."""
    needs = policy.size.needs(record.job)
    if draft.why is not None and needs <= _free(draft, record.type_index):
        draft.why[record.job_id] = _no_place(policy, draft, record, needs)


def _no_place(policy: Stages, draft: Draft, record: Record, needs: int) -> Refusal:
    free, (down, kept) = _free(draft, record.type_index), _shut(draft, record.type_index)
    particular = record.job.particular or not policy.tune.by_gpus
    said = "with the CPUs and memory that it needs" if particular else "where it could use them"
    request = policy.tune.request(draft.view, record.job, needs, record.type_index)
    if draft.barred(policy.place.find, request):
        said = "where no reservation keeps them for others"
        return Refusal("reserved", needs, record.job.gpu_type, free, said=said, down=down, kept=kept)
    return Refusal("place", needs, record.job.gpu_type, free, said=said, down=down, kept=kept)


def given_nothing(policy: Stages, draft: Draft, ranked: Ints, shapes: Shapes) -> None:
    """Note which jobs the size stage gave nothing, if somebody asked."""
    if draft.why is not None:
        for row in ranked[shapes.gpus == 0].tolist():
            record = draft.view.table.records[row]
            said = policy.size.refusal or "its size stage gives it nothing now"
            needs = policy.size.needs(record.job)
            draft.why[record.job_id] = Refusal("size", needs, record.job.gpu_type, said=said)


def reasons(policy: Stages, draft: Draft) -> dict[str, Refusal]:
    """Say of every job that has to wait why, in the order in which the policy would serve them."""
    changes, told = draft.changes, draft.why or {}
    why: dict[str, Refusal] = {}
    ahead: list[str] = []  # those that wait for something that others may take before them
    for record, needs in _in_turn(policy, draft):
        job_id = record.job_id
        waits = changes[job_id] is None if job_id in changes else not record.given
        if waits and job_id not in why:
            why[job_id] = refusal = _reason(policy, draft, record, needs, told.get(job_id), ahead)
            if refusal.kind not in PASSED:
                ahead.append(job_id)
    return why


PASSED = ("limit", "reserved")  # who waits for this lets others pass


def _in_turn(policy: Stages, draft: Draft) -> Iterator[tuple[Record, int]]:
    """Yield jobs as they come first, class by class where there are any, with the GPUs that they need."""
    view = draft.view
    if view.table.bound:
        for c in Admission(Selection(policy, view), draft).in_classes()[0]:
            yield c.record, c.needs
    else:
        for row in policy.order.rank(view).tolist():
            yield view.table.records[row], policy.size.needs(view.table.jobs[row])
    for record in view.waiting:  # an order may leave some out
        yield record, policy.size.needs(record.job)


def _reason(
    policy: Stages, draft: Draft, record: Record, needs: int, told: Refusal | None, ahead: Sequence[str]
) -> Refusal:
    order, free, gpu_type = policy.order, _free(draft, record.type_index), record.job.gpu_type
    if told is not None and (told.kind != "size" or needs <= free):
        return told
    if needs > free:
        down, kept = _shut(draft, record.type_index)
        return Refusal("room", needs, gpu_type, free, len(ahead), down=down, kept=kept)
    if ahead and order.fill == "strict" and not order.preemptive:
        return Refusal("behind", needs, gpu_type, free, len(ahead), ahead[0])
    return _no_place(policy, draft, record, needs)


def _free(draft: Draft, type_index: int) -> int:
    """GPUs of a type that nobody has."""
    room, nodes = draft.room, draft.view.nodes
    if type_index < 0:
        return room.total
    return sum(gpus for gpus, type_ in zip(room.gpus, nodes.type_of, strict=True) if type_ == type_index)


def _shut(draft: Draft, type_index: int) -> tuple[int, int]:
    """GPUs of a type that nobody may have now: of nodes that are down or drained, and of reserved ones."""
    room, view, down, kept = draft.room, draft.view, 0, 0
    if isinstance(room, PartlyClosed):
        nobodys = 0 if view.bars is None else view.bars.nobodys(view.now_s)
        for i, (gpus, _, _) in room.closed.items():
            if i not in view.away and type_index in (-1, view.nodes.type_of[i]):
                reserved = nobodys >> i & 1
                down, kept = down + gpus * (1 - reserved), kept + gpus * reserved
    return down, kept
