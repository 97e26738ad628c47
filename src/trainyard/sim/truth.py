"""What only the simulator knows: how much work each job really is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.state.record import Record


class Truth:
    """The work of the jobs of a run, which the core is not told; jobs are numbered as they are submitted."""

    def __init__(self, jobs: Sequence[Job], speed: SpeedModel | None) -> None:
        self._work = [] if speed is None else [speed.work(job) for job in jobs]

    def finish_s(self, record: Record) -> float:
        """When a run that has just begun, or changed, really ends."""
        assert record.length is not None
        left = max(0.0, self._work[record.seq - 1][0] - record.length.done)
        return record.since + left / record.rate

    def reveal(self, record: Record, fair_s: float = 0.0) -> float:
        """Let a record say how long the job takes alone; return its fair time, which was as believed."""
        believed_s, record.ideal_s = record.ideal_s, self._work[record.seq - 1][2]
        return fair_s * (record.ideal_s / believed_s)


class Named(Truth):
    """The samples of some jobs by name; of all others what is believed is true."""

    def __init__(self, samples: Mapping[str, float]) -> None:
        super().__init__((), None)
        self._samples = samples

    def finish_s(self, record: Record) -> float:
        """When a run that has just begun, or changed, really ends."""
        total = self._samples.get(record.job_id)
        left = record.remaining if total is None else max(0.0, total - record.done_at(record.since))
        return record.since + left / record.rate

    def reveal(self, record: Record, fair_s: float = 0.0) -> float:
        """The record says what is known."""
        return fair_s


def hidden(job: Job) -> Job:
    """Return the job as it is submitted when nobody knows how long it takes."""
    return replace(job, duration_s=None, samples=None)


def require_work(jobs: Sequence[Job]) -> None:
    """Refuse a job that does not say its work: a simulation could not tell when it ends."""
    for job in jobs:
        if job.duration_s is None and job.samples is None:
            what = f"job {job.job_id} has neither duration_s nor samples; give one of them"
            raise InputError(f"{what}, a simulation needs it as the truth")
