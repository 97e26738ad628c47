"""Whole gangs without preemption: running jobs stay, waiting ones start as far as the fill rule lets them."""

from __future__ import annotations

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Ints
from trainyard.model.refusal import Refusal
from trainyard.policy.choose.reasons import found_no_place
from trainyard.policy.choose.reservation import Reservation
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.policy.stages import Changes, Stages
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column
NOBODY: tuple[Record | None, int] = (None, 0)


def request_of(policy: Stages, snapshot: Snapshot, record: Record) -> Request:
    """Return what a job asks the place stage for, to run as requested."""
    return policy.tune.request(snapshot, record.job, record.gpus, record.type_index)


def start(policy: Stages, draft: Draft, record: Record) -> Allocation | None:
    """Let a waiting job start as requested, if there is a place for it."""
    return draft.try_(policy.place.find, request_of(policy, draft.view, record))


def start_alone(policy: Stages, snapshot: Snapshot) -> Changes:
    """Return the start of the only job that waits, if it fits: there is nothing to draft."""
    record = next(policy.order.heads(snapshot), None)
    if record is None or record.gpus > snapshot.free.total:
        return {}
    request = request_of(policy, snapshot, record)
    found = policy.place.find(request, snapshot.free, snapshot.nodes, snapshot.rules.seed)
    return {} if found is None else {record.job_id: found}


def start_waiting(policy: Stages, draft: Draft) -> None:
    """Draft which waiting jobs start, in order."""
    order, snapshot = policy.order, draft.view
    fill, left = order.fill, snapshot.free.total  # GPUs that are free if all that was started is taken out
    if fill == "greedy":
        _fill(policy, draft, order.rank(snapshot), None, left)
        return
    find, request, try_, passed = (
        policy.place.find,
        policy.tune.request,
        draft.try_,
        0,
    )  # looked up once for all
    stuck, freed = snapshot.caches.get((policy.place, policy.tune), NOBODY)
    for record in order.heads(snapshot):
        if record is stuck and fill == "strict" and freed == snapshot.freed:
            break  # it found no place, and nothing became free since
        gpus = record.gpus
        if gpus > left or try_(find, request(snapshot, record.job, gpus, record.type_index)) is None:
            found_no_place(policy, draft, record)
            if snapshot.bars is not None and draft.barred(find, request_of(policy, snapshot, record)):
                passed += 1  # it only waits for the end of a reservation
                continue
            if fill == "easy":
                _fill(policy, draft, order.rank(snapshot)[len(draft.changes) + passed + 1 :], record, left)
            elif not draft.changes:
                snapshot.caches[policy.place, policy.tune] = record, snapshot.freed
            break
        left -= gpus


def _fill(policy: Stages, draft: Draft, rows: Ints, head: Record | None, left: int) -> None:
    """Start whatever fits, in order, without delaying the head."""
    table = draft.view.table
    rows = rows[table.column(C.GPUS)[rows] <= left]
    if not rows.size:
        return
    reserved = None
    if head is not None:
        reserved = Reservation(draft, request_of(policy, draft.view, head), policy.place)
    hopeless: set[tuple[object, ...]] = set()
    for row in rows.tolist():
        record = table.records[row]
        request = request_of(policy, draft.view, record)
        if (asked := request[1:]) in hopeless and draft.why is None and draft.view.bars is None:
            continue
        found = draft.try_(policy.place.find, request) if record.gpus <= left else None
        if found is None:
            hopeless.add(asked)
            found_no_place(policy, draft, record)
        elif reserved is not None and not reserved.allows(record, found):
            draft.take_back()
            if draft.why is not None and head is not None:
                draft.why[record.job_id] = Refusal("delay", record.gpus, head=head.job_id)
        else:
            left -= found.gpus
