"""What comes out of the core: instructions. Inside they are tuples, made into objects for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trainyard.core.events import Event
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

# What to do, the first entry of a tuple; the record of the job is the second.
START: Final = 0  # allocation, rate, finish_s, lr_factor
RETUNE: Final = 1  # allocation, rate, finish_s
STOP: Final = 2  # patience, unless that is 1
KILL: Final = 3
DECIDE_AT: Final = 4  # time_s; it concerns no job
ENDED: Final = 5  # state, finish_s, fair_s
FENCE: Final = 6  # node; it concerns no single job
IGNORED: Final = 7  # event, why
REFUSED: Final = 8  # why

Do = tuple[Any, ...]
Gpus = Mapping[str, tuple[int, ...]]  # indices by node
NO_GPUS: Gpus = {}


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
    attempt: int = field(default=0, compare=False)  # every start has a number; events carry it
    gpus: Gpus = field(default_factory=dict)  # if the core chooses them


@dataclass(slots=True)
class Retune:
    """Give a running job other CPUs or memory, same workers."""

    job_id: str
    allocation: Allocation
    samples_per_s: float
    finish_s: float
    attempt: int = field(default=0, compare=False)


@dataclass(slots=True)
class Stop:
    """Checkpoint and stop the job, then report JobStopped; it may take `patience` times its usual grace."""

    job_id: str
    attempt: int = field(default=0, compare=False)
    patience: float = 1.0


@dataclass(slots=True)
class Kill:
    """End what is left of a job's processes, then report JobGone for every node where it was."""

    job_id: str
    attempt: int = field(default=0, compare=False)


@dataclass(slots=True)
class Fence:
    """Make certain that nothing runs on a node that does not answer, then report NodeFenced."""

    node: str


@dataclass(slots=True)
class Ignored:
    """An event changed nothing: it is late, doubled, or about nobody and nothing that is known."""

    event: Event
    why: str


@dataclass(slots=True)
class PlanRefused:
    """A plan cannot be carried out; what was planned before stays."""

    why: str


@dataclass(slots=True)
class DecideAt:
    """Raise DecisionDue at this time (infinity: not by itself); it replaces what was said of this before."""

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


Instruction = Start | Retune | Stop | Kill | DecideAt | Ended | Fence | Ignored | PlanRefused


def as_objects(todo: list[Do]) -> list[Instruction]:
    """Return the same as objects."""
    return [MAKERS[op](record, *more) for op, record, *more in todo]


def ended(record: Record, state: State, finish_s: float, fair_s: float) -> Ended:
    """Return what is kept of a job that is over."""
    return Ended(
        record.job,
        state,
        finish_s,
        record.first_start_s,
        record.ideal_s,
        fair_s,
        record.attained,
        record.restarts,
        record.preemptions,
        min(record.remaining_at(finish_s) / record.total, 1.0),
    )


def _start(
    record: Record, allocation: Allocation, rate: float, end_s: float, factor: float, gpus: Gpus = NO_GPUS
) -> Start:
    return Start(record.job_id, allocation, rate, end_s, factor, record.attempt, gpus)


def _retune(record: Record, allocation: Allocation, rate: float, end_s: float) -> Retune:
    return Retune(record.job_id, allocation, rate, end_s, record.attempt)


def _stop(record: Record, patience: float = 1.0) -> Stop:
    return Stop(record.job_id, record.attempt, patience)


MAKERS: Final[dict[int, Callable[..., Instruction]]] = {
    START: _start,
    RETUNE: _retune,
    STOP: _stop,
    KILL: lambda record: Kill(record.job_id, record.attempt),
    DECIDE_AT: lambda _, at: DecideAt(at),
    ENDED: ended,
    FENCE: lambda _, node: Fence(node),
    IGNORED: lambda _, event, why: Ignored(event, why),
    REFUSED: lambda _, why: PlanRefused(why),
}
