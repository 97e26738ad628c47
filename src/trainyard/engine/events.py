"""What goes into the core (events) and what comes out (instructions): plain data."""

from __future__ import annotations

from typing import NamedTuple

from trainyard.engine.states import State
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job


class JobSubmitted(NamedTuple):
    """A user handed in a job."""

    time_s: float
    job: Job


class JobFinished(NamedTuple):
    """A running job ended by itself, well or badly."""

    time_s: float
    job_id: str
    outcome: State = State.DONE


class JobStopped(NamedTuple):
    """A job that was told to stop has written its checkpoint and is gone."""

    time_s: float
    job_id: str


class JobCancelled(NamedTuple):
    """A user withdrew a job."""

    time_s: float
    job_id: str


class ProgressReported(NamedTuple):
    """A running job says how much is left; without such reports the speed model is believed."""

    time_s: float
    job_id: str
    remaining_samples: float


class NodeFailed(NamedTuple):
    """A node is gone, and with it all that ran there since the last checkpoints."""

    time_s: float
    node: str


class NodeRepaired(NamedTuple):
    """A node is back, empty."""

    time_s: float
    node: str


class DecisionDue(NamedTuple):
    """Ask the policy for a plan and carry it out."""

    time_s: float


Event = (
    JobSubmitted
    | JobFinished
    | JobStopped
    | JobCancelled
    | ProgressReported
    | NodeFailed
    | NodeRepaired
    | DecisionDue
)


class Start(NamedTuple):
    """Start the job (again) with this allocation; by the speed model it will be done at `finish_s`."""

    job_id: str
    allocation: Allocation
    samples_per_s: float
    finish_s: float


class Retune(NamedTuple):
    """Give a running job other CPUs or memory, same workers."""

    job_id: str
    allocation: Allocation
    samples_per_s: float
    finish_s: float


class Stop(NamedTuple):
    """Checkpoint and stop the job, then report JobStopped."""

    job_id: str


class Kill(NamedTuple):
    """End what is left of a job's processes; nothing more is expected of it."""

    job_id: str


class Wake(NamedTuple):
    """Raise DecisionDue at this time if the job has been running all along."""

    job_id: str
    time_s: float


class Ended(NamedTuple):
    """A job left the yard; this is all that is kept of it besides its story."""

    job: Job
    state: State
    finish_s: float
    first_start_s: float | None
    ideal_s: float
    fair_s: float
    gpu_s: float
    restarts: int
    preemptions: int


Instruction = Start | Retune | Stop | Kill | Wake | Ended
