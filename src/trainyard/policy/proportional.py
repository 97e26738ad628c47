"""Tune stage: every GPU takes its node's proportional share of CPUs and memory along."""

from __future__ import annotations

from trainyard.model.job import Job
from trainyard.policy.stages import Request, Tune


class Proportional(Tune):
    """GPU-proportional, unless the job itself asks for CPUs or memory."""

    def request(self, job: Job, gpus: int, gpu_type: int) -> Request:
        """Ask for the node's share, or for the job's own numbers."""
        servers = (
            1
            if job.profile is not None and job.profile.sync is not None and job.profile.sync.kind == "ps"
            else 0
        )
        return Request(
            job,
            gpus,
            gpu_type,
            None if job.cpus is None else job.cpus / job.gpus,
            None if job.memory_gb is None else job.memory_gb / job.gpus,
            servers,
        )
