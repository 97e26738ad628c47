"""An order for Trainyard, in a package of its own."""

from __future__ import annotations

from trainyard import InputError, JobView, ScoreOrder


class Hurry(ScoreOrder):
    """Most weight per GPU-second left first; after patience_s of waiting a job counts twice."""

    def __init__(self, patience_s: float = 86400.0) -> None:
        if patience_s <= 0:
            raise InputError(f"patience_s is {patience_s:g}; give seconds above 0")
        self.patience_s = patience_s

    def score(self, job: JobView) -> float:
        """Return the GPU-seconds left for each unit of weight; waiting makes them count less."""
        waited_s = job.now_s - job.arrival_s - job.executed_s
        return job.remaining_s * job.gpus / (job.weight * (1 + waited_s / self.patience_s))
