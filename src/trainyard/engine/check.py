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
    if len(allocation.shares) > 1 and len({share.node for share in allocation.shares}) < len(
        allocation.shares
    ):
        raise PlanError(f"job {job.job_id}: a node is named twice")
    profile = job.profile
    apart = profile is not None and profile.apart
    for node, gpus, servers, cpus, memory_gb in allocation.shares:
        at = nodes.index.get(node)
        if at is None:
            raise PlanError(f"job {job.job_id}: there is no node {node}")
        if job.gpu_type and gpus and nodes.types[nodes.type[at]] != job.gpu_type:
            raise PlanError(f"job {job.job_id} needs {job.gpu_type} but gets GPUs of {node}")
        if gpus < 0 or servers < 0 or cpus < -EPSILON or memory_gb < -EPSILON:
            raise PlanError(f"job {job.job_id} gets less than nothing on {node}")
        if apart and not _feeds(job, gpus, servers, cpus, memory_gb):
            raise PlanError(f"job {job.job_id} gets less on {node} than its workers and servers there need")


def _feeds(job: Job, gpus: int, servers: int, cpus: float, memory_gb: float) -> bool:
    """Whether workers and parameter servers get what each of them asks for."""
    server = job.profile.server if job.profile is not None else None
    worker_cpus, worker_gb = job.asked_per_gpu
    need_cpus = gpus * (worker_cpus or 0.0) + (servers * server.cpus if server else 0.0)
    need_gb = gpus * (worker_gb or 0.0) + (servers * server.memory_gb if server else 0.0)
    return cpus >= need_cpus - EPSILON and memory_gb >= need_gb - EPSILON


def _check_room(snapshot: Snapshot, changes: Mapping[str, Allocation | None]) -> None:
    free, index, running = snapshot.free, snapshot.nodes.index, snapshot.running
    left: dict[str, list[float]] = {}
    for job_id, allocation in changes.items():
        held = running.get(job_id)
        for sign, shares in ((1, held.shares if held else ()), (-1, allocation.shares if allocation else ())):
            for node, gpus, _, cpus, memory_gb in shares:
                room = left.get(node)
                if room is None:
                    i = index[node]
                    room = left[node] = [free.gpus[i], free.cpus[i], free.memory_gb[i]]
                room[0] += sign * gpus
                room[1] += sign * cpus
                room[2] += sign * memory_gb
    for node, room in left.items():
        if min(room) < -EPSILON:
            names = zip(("GPUs", "CPUs", "GB of memory"), room, strict=True)
            short = ", ".join(f"{-amount:g} {what}" for what, amount in names if amount < -EPSILON)
            raise PlanError(f"node {node} is over-allocated by {short}")
