"""Tune stages of Synergy (Mohan et al., OSDI'22): CPUs and memory by need, not in proportion to GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.policy.draft import Draft
from trainyard.policy.place.fit import by_type
from trainyard.policy.request import Request
from trainyard.policy.stages import Tune
from trainyard.policy.tune.proportional import proportional_request
from trainyard.policy.tune.synergy.exchange import exchange
from trainyard.policy.tune.synergy.occupants import Occupants
from trainyard.policy.tune.synergy.share_out import share_out
from trainyard.state.room import Room, total
from trainyard.state.snapshot import Snapshot


class Greedy(Tune):
    """Synergy-GREEDY: every job gets its best-case demand or waits, even if GPUs stay idle."""

    by_gpus: ClassVar[bool] = False

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the best-case demand, or for the job's own numbers."""
        asked = proportional_request(job, gpus, gpu_type)
        if job.profile is None or job.particular:
            return asked
        nodes = snapshot.nodes
        cpus, memory_gb = snapshot.sensitivity.best_demand(
            job, gpus, nodes.types[gpu_type] if gpu_type >= 0 else ""
        )
        hungry = asked._replace(cpus_per_gpu=cpus, memory_per_gpu=memory_gb)
        # On unlike nodes a gang may find its best-case demand nowhere: then its share has to do.
        places = by_type(hungry, Room.all_of(nodes), nodes)
        return hungry if any(total(usable) >= gpus for usable in places) else asked


class SynergyTune(Tune):
    """Synergy-TUNE: best-case demands where they fit, no job slower than with its proportional share.

    Jobs are placed as if all had their proportional shares, so a GPU never idles for lack of CPUs or memory.
    Then hungry jobs change seats with modest ones where that pays, and each node is shared out.
    """

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the proportional share: that much there always is."""
        return proportional_request(job, gpus, gpu_type)

    def ground(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with every job cut to its proportional share."""
        running, free = snapshot.target, snapshot.free.copy()
        if snapshot.table.particular:
            nodes, of = snapshot.nodes, snapshot.table.of
            running = {j: _cut(snapshot, of[j].job, a) for j, a in running.items()}
            for job_id, allocation in snapshot.target.items():
                free.give(nodes, allocation)
                free.take(nodes, running[job_id])
        free.plain = not snapshot.table.particular  # where there is a GPU, its share can be cut out
        return replace(snapshot, target=running, free=free)

    def improve(self, snapshot: Snapshot, draft: Draft) -> None:
        """Hand out CPUs and memory to all that will run."""
        seen = snapshot.placed, snapshot.reports
        if not draft.changes and snapshot.caches.get(self) == seen:
            return  # nothing was to be changed then; since, jobs only came nearer to their ends
        found = draft.changes.copy()
        occupants = Occupants(snapshot, found)
        self.tune(occupants)
        draft.rewrite(occupants.changes())
        if draft.trespasses():  # all stay where they were placed, which is on nodes that they may use
            occupants = Occupants(snapshot, found)
            share_out(occupants)
            draft.rewrite(occupants.changes())
        if not draft.changes:
            snapshot.caches[self] = seen

    def tune(self, occupants: Occupants) -> None:
        """Set seats and places."""
        exchange(occupants)
        share_out(occupants)


def _cut(snapshot: Snapshot, job: Job, allocation: Allocation) -> Allocation:
    """The same workers with their proportional share; what a user asked for is not cut."""
    if job.particular:
        return allocation
    index, per_gpu = snapshot.nodes.index, snapshot.nodes.share_per_gpu
    shares = []
    for node, gpus, servers, _, _ in allocation.shares:
        cpus, memory = per_gpu[index[node]]
        shares.append(Share(node, gpus, servers, gpus * cpus, gpus * memory))
    return Allocation(tuple(shares))
