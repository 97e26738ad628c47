"""What the core keeps of an active job besides its row in the job table."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.core.states import State
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job


@dataclass(slots=True)
class Record:
    """One active job."""

    job: Job
    seq: int
    ideal_s: float
    submitted_s: float
    met: float  # integral of the number of active jobs over time, when it came
    saved: float  # samples left at the last checkpoint
    state: State = State.WAITING
    occupies: Allocation | None = None  # what its processes occupy; None when it has none
    stopping: bool = False  # it still blocks its nodes
    first_start_s: float | None = None
    trained_with: int = 0  # GPUs of its last run
    run_since_s: float = 0.0  # when the present run began to make progress
    preemptions: int = 0
    special: int = 0  # 1 if it is given other than proportional CPUs or memory
