"""The one place where plans are checked against capacity."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job
from trainyard.model.tolerance import CPUS_GB
from trainyard.state.snapshot import Snapshot


def check_plan(snapshot: Snapshot, changes: Mapping[str, Allocation | None]) -> None:
    """Raise PlanError unless every change is a whole gang on nodes that have room for all of them."""
    of, target = snapshot.table.of, snapshot.target
    if len(changes) == 1:
        ((job_id, allocation),) = changes.items()
        if allocation is not None and allocation.at >= 0 and _may_start(snapshot, job_id, allocation):
            return  # the common case, looked at more quickly; what is wrong is said below
    room: Left = {}
    for job_id, allocation in changes.items():
        record = of.get(job_id)
        if record is None:
            raise PlanError(f"job {job_id} is not active and cannot be planned")
        before = target.get(job_id)
        if before is not None:
            _give(snapshot, before, room)
        if allocation is not None:
            _take(snapshot, record.job, allocation, room)
    for at, (gpus, cpus, memory_gb) in room.items():
        if gpus < 0 or cpus < -CPUS_GB or memory_gb < -CPUS_GB:
            raise _over_allocated(snapshot.nodes.ids[at], room[at])


def _may_start(snapshot: Snapshot, job_id: str, allocation: Allocation) -> bool:
    """Whether a waiting job gets all that it must have, on one node, with a proportional share."""
    record = snapshot.table.of.get(job_id)
    if record is None or record.given:
        return False
    job, free, at, gpus = record.job, snapshot.free, allocation.at, allocation.gpus
    share = allocation.shares[0]
    return (
        0 < gpus <= free.gpus[at]
        and (gpus == record.gpus or job.least_gpus <= gpus <= job.most_gpus)
        and share.cpus <= free.cpus[at] + CPUS_GB
        and share.memory_gb <= free.memory_gb[at] + CPUS_GB
        and record.type_index in (-1, snapshot.nodes.type_of[at])
        and (job.profile is None or not job.profile.apart)
    )


Left = dict[int, list[float]]  # node -> GPUs, CPUs and GB of memory that are left of it


def _take(snapshot: Snapshot, job: Job, allocation: Allocation, room: Left) -> None:
    """Take what a job is given out of what is left, if it is a whole gang."""
    nodes, free = snapshot.nodes, snapshot.free
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
        if gpus < 0 or servers < 0 or cpus < -CPUS_GB or memory_gb < -CPUS_GB:
            raise PlanError(f"job {job.job_id} gets less than nothing on {node}")
        if apart:
            need = job.need(gpus, servers)
            if cpus < need[0] - CPUS_GB or memory_gb < need[1] - CPUS_GB:
                what = "than its workers and servers there need"
                raise PlanError(f"job {job.job_id} gets less on {node} {what}")
        left = room.get(at)
        if left is None:
            room[at] = [free.gpus[at] - gpus, free.cpus[at] - cpus, free.memory_gb[at] - memory_gb]
        else:
            left[0] -= gpus
            left[1] -= cpus
            left[2] -= memory_gb


def _give(snapshot: Snapshot, allocation: Allocation, room: Left) -> None:
    """Add what a job was given before."""
    free, index = snapshot.free, snapshot.nodes.index
    for node, gpus, _, cpus, memory_gb in allocation.shares:
        at = index[node]
        left = room.get(at)
        if left is None:
            left = room[at] = [free.gpus[at], free.cpus[at], free.memory_gb[at]]
        left[0] += gpus
        left[1] += cpus
        left[2] += memory_gb


def _over_allocated(node: str, left: list[float]) -> PlanError:
    names = zip(("GPUs", "CPUs", "GB of memory"), left, strict=True)
    short = ", ".join(f"{-amount:g} {what}" for what, amount in names if amount < -CPUS_GB)
    return PlanError(f"node {node} is over-allocated by {short}")
