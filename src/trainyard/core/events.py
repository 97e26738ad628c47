"""What goes into the core: events, as plain data.

`attempt` is the number of the start that an event is about; 0 stands for the latest one. What is said of an
earlier one is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainyard.model.cluster import Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.state.lifecycle import State


@dataclass(slots=True)
class JobSubmitted:
    """A user handed in a job."""

    time_s: float
    job: Job


@dataclass(slots=True)
class JobStarted:
    """The engine confirms a start; where it chose the GPUs itself it says which."""

    time_s: float
    job_id: str
    attempt: int = 0
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # indices by node


@dataclass(slots=True)
class JobFinished:
    """All work of a job is done; or, as a trace says, it ended for good in another way."""

    time_s: float
    job_id: str
    outcome: State = State.DONE
    attempt: int = 0


@dataclass(slots=True)
class JobFailed:
    """A run ended badly, in one of the ways of core/real/ends.py; unless `gone`, others of it still run."""

    time_s: float
    job_id: str
    kind: str
    text: str = ""
    exit_code: int | None = None
    attempt: int = 0
    gone: bool = True
    exit_signal: int | None = None


@dataclass(slots=True)
class JobStopped:
    """A job that was told to stop is gone; unless `saved`, without a new checkpoint.

    `code` says how it ended if that is known: saved, not_saved, or stopped (it exited and said nothing).
    """

    time_s: float
    job_id: str
    attempt: int = 0
    saved: bool = True
    code: str = ""
    text: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None


@dataclass(slots=True)
class JobGone:
    """The engine shows no process of this attempt any more, on one node or ("") anywhere."""

    time_s: float
    job_id: str
    attempt: int = 0
    node: str = ""


@dataclass(slots=True)
class JobCancelled:
    """A user withdrew a job: it may save its work first, or is killed at once."""

    time_s: float
    job_id: str
    at_once: bool = False
    text: str = "cancelled by its user"


@dataclass(slots=True)
class JobHeld:
    """A user wants a job to wait; if it runs, it saves its work and stops."""

    time_s: float
    job_id: str


@dataclass(slots=True)
class JobReleased:
    """A held job may be planned again."""

    time_s: float
    job_id: str


@dataclass(slots=True)
class JobChanged:
    """A user changed a job: any of CHANGEABLE (core/real/changes.py)."""

    time_s: float
    job_id: str
    changes: Mapping[str, float | int | None]


@dataclass(slots=True)
class JobRetried:
    """A job that failed or was cancelled is to go on from its last checkpoint."""

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
    attempt: int = 0


@dataclass(slots=True)
class CheckpointWritten:
    """A job has saved what it had done: a failure takes no more than what came after."""

    time_s: float
    job_id: str
    samples_done: float
    attempt: int = 0


@dataclass(slots=True)
class NodeJoined:
    """A new node, or one that had left."""

    time_s: float
    node: Node


@dataclass(slots=True)
class NodeLeft:
    """A node is taken out of the cluster; what ran there is lost, as if it had failed."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeDrained:
    """Nothing new may start on a node; what runs there goes on."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeUndrained:
    """A drained node may be used again."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeFailed:
    """A node does not answer; what ran there since the last checkpoints is lost."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeFenced:
    """It is certain that nothing runs any more on a node that failed."""

    time_s: float
    node: str


@dataclass(slots=True)
class NodeRepaired:
    """A node is back, empty."""

    time_s: float
    node: str


@dataclass(slots=True)
class GpuFailed:
    """One GPU of a node cannot be used any more; the job that holds it is started again elsewhere."""

    time_s: float
    node: str
    index: int


@dataclass(slots=True)
class GpuRepaired:
    """A GPU that failed can be used again."""

    time_s: float
    node: str
    index: int


@dataclass(slots=True)
class ReservationMade:
    """Nodes are kept for a tenant, or for nobody, for some time."""

    time_s: float
    reservation: Reservation


@dataclass(slots=True)
class ReservationDropped:
    """A reservation is given up."""

    time_s: float
    name: str


@dataclass(slots=True)
class PolicyChanged:
    """From now on another policy decides."""

    time_s: float
    name: str


@dataclass(slots=True)
class RulesChanged:
    """From now on other rules hold: any of CHANGEABLE_RULES (core/real/changes.py)."""

    time_s: float
    changes: Mapping[str, float | int | None]


@dataclass(slots=True)
class DecisionsPaused:
    """No policy is asked from now on; with `stop` everything that runs saves its work and waits."""

    time_s: float
    stop: bool = False


@dataclass(slots=True)
class DecisionsResumed:
    """The policy is asked again."""

    time_s: float


@dataclass(slots=True)
class DecisionDue:
    """Ask the policy for a plan and carry it out."""

    time_s: float


Event = (
    JobSubmitted
    | JobStarted
    | JobFinished
    | JobFailed
    | JobStopped
    | JobGone
    | JobCancelled
    | JobHeld
    | JobReleased
    | JobChanged
    | JobRetried
    | ProgressReported
    | CheckpointWritten
    | NodeJoined
    | NodeLeft
    | NodeDrained
    | NodeUndrained
    | NodeFailed
    | NodeFenced
    | NodeRepaired
    | GpuFailed
    | GpuRepaired
    | ReservationMade
    | ReservationDropped
    | PolicyChanged
    | RulesChanged
    | DecisionsPaused
    | DecisionsResumed
    | DecisionDue
)
