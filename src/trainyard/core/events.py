"""What goes into the core (events) and what comes out (instructions): plain data."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.core.states import State
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job


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
    """A running job says how much is left, and its loss; without such reports the speed model is believed."""

    time_s: float
    job_id: str
    remaining_samples: float
    loss: float | None = None


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
    | NodeFailed
    | NodeRepaired
    | DecisionDue
)


@dataclass(slots=True)
class Start:
    """Start the job (again) with this allocation; by the speed model it will be done at `finish_s`.

    A job whose batch grew with its workers since its last run multiplies its learning rate by `lr_factor`
    (linear scaling, Goyal et al. 2017).
    """

    job_id: str
    allocation: Allocation
    samples_per_s: float
    finish_s: float
    lr_factor: float = 1.0


@dataclass(slots=True)
class Retune:
    """Give a running job other CPUs or memory, same workers."""

    job_id: str
    allocation: Allocation
    samples_per_s: float
    finish_s: float


@dataclass(slots=True)
class Stop:
    """Checkpoint and stop the job, then report JobStopped."""

    job_id: str


@dataclass(slots=True)
class Kill:
    """End what is left of a job's processes; nothing more is expected of it."""

    job_id: str


@dataclass(slots=True)
class Wake:
    """Raise DecisionDue at this time if the job has been running all along."""

    job_id: str
    time_s: float


@dataclass(slots=True)
class Ended:
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
    undone: float = 0.0  # part of its work


Instruction = Start | Retune | Stop | Kill | Wake | Ended
