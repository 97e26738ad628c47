"""What goes into the core: events, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.model.job import Job
from trainyard.state.lifecycle import State


@dataclass(slots=True)
class JobSubmitted:
    """A user handed in a job."""

    time_s: float
    job: Job


@dataclass(slots=True)
class JobFinished:
    """A running job ended by itself, well or badly."""

    time_s: float
    job_id: str
    outcome: State = State.DONE


@dataclass(slots=True)
class JobStopped:
    """A job that was told to stop has written its checkpoint and is gone."""

    time_s: float
    job_id: str


@dataclass(slots=True)
class JobCancelled:
    """A user withdrew a job."""

    time_s: float
    job_id: str


@dataclass(slots=True)
class ProgressReported:
    """A job says how far it is; if it knows, also how fast, its loss, and how much it has to do in all.

    Of a job that never reports the speed model is believed.
    """

    time_s: float
    job_id: str
    samples_done: float
    samples_per_s: float | None = None
    loss: float | None = None
    samples_total: float | None = None


@dataclass(slots=True)
class CheckpointWritten:
    """A job has saved what it had done: a failure takes no more than what came after."""

    time_s: float
    job_id: str
    samples_done: float


@dataclass(slots=True)
class NodeFailed:
    """A node is gone, and with it all that ran there since the last checkpoints."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeRepaired:
    """A node is back, empty."""

    time_s: float
    node: str


@dataclass(slots=True)
class DecisionDue:
    """Ask the policy for a plan and carry it out."""

    time_s: float


Event = (
    JobSubmitted
    | JobFinished
    | JobStopped
    | JobCancelled
    | ProgressReported
    | CheckpointWritten
    | NodeFailed
    | NodeRepaired
    | DecisionDue
)
