"""Tune stage: every GPU takes its node's proportional share of CPUs and memory along."""

from __future__ import annotations

from trainyard.model.job import Job
from trainyard.policy.request import Request
from trainyard.policy.stages import Tune
from trainyard.state.snapshot import Snapshot

new_tuple = tuple.__new__  # Request(...) takes twice as long


class Proportional(Tune):
    """GPU-proportional, unless the job itself asks for CPUs or memory."""

    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the node's share, or for the job's own numbers."""
        if job.profile is None and not job.particular:
            return new_tuple(Request, (job, gpus, gpu_type, None, None, 0, None, None))
        return proportional_request(job, gpus, gpu_type)


def proportional_request(job: Job, gpus: int, gpu_type: int) -> Request:
    """Ask for the node's share, or for the job's own numbers."""
    profile = job.profile
    if profile is None or not profile.serves:
        if not job.particular:
            return Request(job, gpus, gpu_type)
        return Request(job, gpus, gpu_type, *job.asked_per_gpu)
    return Request(job, gpus, gpu_type, *job.asked_per_gpu, gpus, profile.server if profile.apart else None)
