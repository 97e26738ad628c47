"""Nobody waits for ever: where nothing would run although a job could, one does.

A stage may leave a job waiting for as long as others run. Once nothing would, what it wants gives way: what
runs goes on, or the first in the ranking that fits starts, as near to what it asked for as there is room.
So every job that fits at some size runs in the end, if the others end. The plan's notes say who.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.policy.draft import Draft
from trainyard.policy.place.anywhere import anywhere
from trainyard.policy.request import Request
from trainyard.policy.stages import Size, Stages
from trainyard.policy.tune.proportional import proportional_request
from trainyard.state.record import Record
from trainyard.state.room import Room

RESCUED = "rescued"  # the note that names the jobs


def leaves_nobody(draft: Draft) -> bool:
    """Whether nothing runs if a draft is carried out."""
    changes, target = draft.changes, draft.view.target
    return len(changes) >= len(target) and not any(changes.values()) and all(j in changes for j in target)


def rescue(policy: Stages, draft: Draft) -> list[str]:
    """Draft that a job runs, where nothing would; return which."""
    view = draft.view
    if view.target:
        draft.undo()
        return list(view.target)
    strict = policy.order.fill == "strict" and not policy.order.preemptive
    for record in policy.order.heads(view) if view.free.total else ():
        if _start(policy, draft, record):
            return [record.job_id]
        if strict and _needs_nodes(policy, draft, record):
            break  # and nobody may pass it
    return []


def _start(policy: Stages, draft: Draft, record: Record) -> bool:
    """Start a job as near to what it asks for as there is room now."""
    job = record.job
    most = _most(draft, record)
    if job.least_gpus > most:
        return False
    whole = policy.size.needs(job) == job.gpus
    if whole and _needs_nodes(policy, draft, record):
        return False
    # Of the sizes that any stage may give it, not of those that this one likes.
    for size in (job.gpus, *Size.smaller(policy.size, job, job.gpus)):
        if size > most or (job.sizes and size not in job.sizes):
            continue
        for request in _requests(policy, draft, record, size):
            if _take(draft, request, draft.look(policy.place.find, request)):
                return True
    return _start_anywhere(draft, record)


def _start_anywhere(draft: Draft, record: Record) -> bool:
    """Start a job at its smallest by an exact search, on the nodes that it may use."""
    asked: list[Request] = []

    def find(request: Request, room: Room, nodes: NodeTable, _seed: int) -> Allocation | None:
        found = anywhere(request.job, request.gpu_type, room, nodes)
        asked.extend(() if found is None else (found[0],))
        return None if found is None else found[1]

    found = draft.look(find, Request(record.job, record.job.least_gpus, record.type_index))
    return found is not None and _take(draft, asked[0], found)


def _most(draft: Draft, record: Record) -> int:
    """GPUs that the job may have at most: those that are free, and no more than its tenant may have."""
    tenant, free = draft.view.nodes.cluster.tenants.get(record.job.tenant), draft.room.total
    return free if tenant is None or tenant.limit is None else min(free, tenant.limit)


def _requests(policy: Stages, draft: Draft, record: Record, size: int) -> Iterator[Request]:
    """What to ask for at one size: as the tune stage likes, then plainly, with fewer and fewer servers."""
    yield policy.tune.request(draft.view, record.job, size, record.type_index)
    request = proportional_request(record.job, size, record.type_index)
    yield request
    servers = request.servers
    while request.server is not None and servers > 1:
        servers //= 2
        yield request._replace(servers=servers)


def _take(draft: Draft, request: Request, found: Allocation | None) -> bool:
    """Draft what was found, if the job makes any progress there."""
    if found is None or not draft.view.speed.rate(request.job, found) > 0:
        return False
    draft.commit(request, found)
    return True


def _needs_nodes(policy: Stages, draft: Draft, record: Record) -> bool:
    """Whether a job would fit as it asks if the nodes that are down were up again."""
    view = draft.view
    if view.up.all():
        return False
    request = policy.tune.request(view, record.job, record.gpus, record.type_index)
    found = draft.look(policy.place.find, request)
    everything = Room.all_of(view.nodes)
    return found is None and policy.place.find(request, everything, view.nodes, view.rules.seed) is not None
