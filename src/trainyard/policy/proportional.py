"""Tune stage: every GPU takes its node's proportional share of CPUs and memory along."""

from __future__ import annotations

from trainyard.model.job import Job
from trainyard.policy.snapshot import Snapshot
from trainyard.policy.stages import Request, Tune


class Proportional(Tune):
    """GPU-proportional, unless the job itself asks for CPUs or memory."""

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the node's share, or for the job's own numbers."""
        return proportional_request(job, gpus, gpu_type)


def proportional_request(job: Job, gpus: int, gpu_type: int) -> Request:
    """Ask for the node's share, or for the job's own numbers."""
    sync = job.profile.sync if job.profile is not None else None
    return Request(
        job,
        gpus,
        gpu_type,
        None if job.cpus is None else job.cpus / job.gpus,
        None if job.memory_gb is None else job.memory_gb / job.gpus,
        1 if sync is not None and sync.kind == "ps" else 0,
    )
