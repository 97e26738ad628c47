"""Tune stages of Synergy (Mohan et al., OSDI'22): CPUs and memory by need instead of in proportion to GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.policy.divide import divide
from trainyard.policy.proportional import proportional_request
from trainyard.policy.regroup import regroup
from trainyard.policy.snapshot import Snapshot
from trainyard.policy.stages import Changes, Request, Tune
from trainyard.policy.tenants import Tenants


class Greedy(Tune):
    """Synergy-GREEDY: every job gets its best-case demand or waits, even if GPUs stay idle."""

    by_gpus: ClassVar[bool] = False

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the best-case demand, or for the job's own numbers."""
        asked = proportional_request(job, gpus, gpu_type)
        if job.profile is None or job.cpus is not None or job.memory_gb is not None:
            return asked
        types = snapshot.nodes.types
        cpus, memory_gb = snapshot.sensitivity.best_demand(
            job, gpus, types[gpu_type] if gpu_type >= 0 else ""
        )
        return asked._replace(cpus_per_gpu=cpus, memory_per_gpu=memory_gb)


class SynergyTune(Tune):
    """Synergy-TUNE: best-case demands where they fit, nobody slower than with its proportional share.

    Jobs are placed as if all had their proportional shares, so a GPU never idles for lack of CPUs or memory.
    Then hungry jobs change seats with modest ones where that pays, and each node is shared out.
    """

    retunes: ClassVar[bool] = True

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the proportional share: that much there always is."""
        return proportional_request(job, gpus, gpu_type)

    def ground(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with everybody cut to its proportional share."""
        cut = {
            job_id: _cut(snapshot, snapshot.table.jobs[snapshot.table.row_of[job_id]], allocation)
            for job_id, allocation in snapshot.running.items()
        }
        free = snapshot.free.copy()
        index = snapshot.nodes.index
        for job_id, allocation in snapshot.running.items():
            if cut[job_id] is not allocation:
                free.give(index, allocation.shares)
                free.take(index, cut[job_id].shares)
        free.plain = all(
            job.cpus is None and job.memory_gb is None
            for job in (snapshot.table.jobs[snapshot.table.row_of[job_id]] for job_id in cut)
        )
        return replace(snapshot, running=cut, free=free)

    def share(self, snapshot: Snapshot, changes: Changes) -> Changes:
        """Hand out CPUs and memory to all that will run."""
        planned = {j: a for j, a in snapshot.running.items() if j not in changes}
        planned |= {j: a for j, a in changes.items() if a is not None}
        tenants = Tenants(snapshot, planned)
        self.tune(tenants)
        return tenants.changes(changes)

    def tune(self, tenants: Tenants) -> None:
        """Set seats and places."""
        regroup(tenants)
        divide(tenants)


def _cut(snapshot: Snapshot, job: Job, allocation: Allocation) -> Allocation:
    """The same workers with their proportional share; what a user asked for is not cut."""
    if job.cpus is not None or job.memory_gb is not None:
        return allocation
    index, per_gpu = snapshot.nodes.index, snapshot.nodes.share_per_gpu
    shares = []
    for node, gpus, servers, _, _ in allocation.shares:
        cpus, memory = per_gpu[index[node]]
        shares.append(Share(node, gpus, servers, gpus * cpus, gpus * memory))
    return Allocation(tuple(shares))
