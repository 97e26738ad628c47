"""The one place where plans are checked against capacity."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job
from trainyard.policy.snapshot import Snapshot

EPSILON = 1e-6


def check_plan(snapshot: Snapshot, changes: Mapping[str, Allocation | None]) -> None:
    """Raise PlanError unless every change is a whole gang on nodes that have room for all of them."""
    for job_id, allocation in changes.items():
        row = snapshot.table.row_of.get(job_id)
        if row is None:
            raise PlanError(f"job {job_id} is not active and cannot be planned")
        if allocation is not None:
            _check_gang(snapshot, snapshot.table.jobs[row], allocation)
    _check_room(snapshot, changes)


def _check_gang(snapshot: Snapshot, job: Job, allocation: Allocation) -> None:
    nodes = snapshot.nodes
    if not job.least_gpus <= allocation.gpus <= job.most_gpus:
        raise PlanError(
            f"job {job.job_id} gets {allocation.gpus} GPUs but takes {job.least_gpus} to {job.most_gpus}"
        )
    seen: set[str] = set()
    for share in allocation.shares:
        at = nodes.index.get(share.node)
        if at is None or share.node in seen:
            raise PlanError(
                f"job {job.job_id}: node {share.node} is {'unknown' if at is None else 'named twice'}"
            )
        if job.gpu_type and share.gpus and nodes.types[nodes.type[at]] != job.gpu_type:
            raise PlanError(f"job {job.job_id} needs {job.gpu_type} but gets GPUs of {share.node}")
        if share.gpus < 0 or share.servers < 0 or share.cpus < -EPSILON or share.memory_gb < -EPSILON:
            raise PlanError(f"job {job.job_id} gets less than nothing on {share.node}")
        seen.add(share.node)


def _check_room(snapshot: Snapshot, changes: Mapping[str, Allocation | None]) -> None:
    free, index = snapshot.free, snapshot.nodes.index
    left: dict[str, list[float]] = {}
    for sign, allocations in ((1, (snapshot.running.get(j) for j in changes)), (-1, changes.values())):
        for allocation in allocations:
            for share in allocation.shares if allocation is not None else ():
                room = left.get(share.node)
                if room is None:
                    i = index[share.node]
                    room = left[share.node] = [
                        float(free.gpus[i]),
                        float(free.cpus[i]),
                        float(free.memory_gb[i]),
                    ]
                room[0] += sign * share.gpus
                room[1] += sign * share.cpus
                room[2] += sign * share.memory_gb
    for node, room in left.items():
        if min(room) < -EPSILON:
            what = ("GPUs", "CPUs", "GB of memory")[room.index(min(room))]
            raise PlanError(f"node {node} is over-allocated by {-min(room):g} {what}")
