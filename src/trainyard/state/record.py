"""One active job: what is known of it, what it was given, and what it does."""

from __future__ import annotations

from typing import Final

from trainyard.model.allocation import Allocation
from trainyard.model.estimate import Estimate
from trainyard.model.job import Job
from trainyard.state.length import Length
from trainyard.state.lifecycle import State
from trainyard.state.seen import Seen
from trainyard.state.trouble import Trouble

WAITING = State.WAITING

# All attributes of a record.
ATTRIBUTES: Final = (
    "arrival_s",
    "attained",
    "executed",
    "first_start_s",
    "given",
    "given_since",
    "gpus",
    "ideal_s",
    "job",
    "job_id",
    "length",
    "met",
    "occupies",
    "pace",
    "preemptions",
    "rate",
    "reference_rate",
    "remaining",
    "reported_s",
    "restarts",
    "row",
    "run_since_s",
    "saved",
    "seen",
    "seq",
    "since",
    "special",
    "start",
    "state",
    "total",
    "trained_with",
    "trouble",
    "type_index",
)


UNSCHEDULABLE = "unschedulable"


class Record:
    """All numbers of one active job. Only the core writes here; whoever decides reads.

    Work is counted lazily: `remaining` samples were left at `since`, and `rate` more are done in every second
    from then on. What the job holds is counted in the same way, from `given_since`.
    """

    __slots__ = ATTRIBUTES

    def __init__(
        self,
        job: Job,
        seq: int,
        type_index: int,
        work: tuple[float, float, float],
        now_s: float,
        met: float,
    ) -> None:
        self.job = job
        self.job_id = job.job_id
        self.seq = seq  # order of submission: the last tie-break everywhere
        self.row = -1  # of the job table; below 0 when the job is over
        self.gpus = job.gpus  # requested
        self.type_index = type_index  # of the one GPU type that the job accepts, or -1
        self.arrival_s = now_s
        self.met = met  # integral of the number of active jobs over time, when it came
        self.total, self.reference_rate, self.ideal_s = work  # samples; samples/s and time as requested
        self.remaining = self.saved = self.total  # samples left at `since`, and at the last checkpoint
        self.rate = 0.0  # samples/s from `since` on
        self.since = self.given_since = now_s
        self.given = 0  # GPUs from `given_since` on
        self.attained = 0.0  # GPU-seconds up to `given_since`
        self.executed = 0.0  # seconds with GPUs up to `given_since`
        self.restarts = 0
        self.preemptions = 0
        self.state = WAITING
        self.occupies: Allocation | None = None  # what its processes occupy
        self.first_start_s: float | None = None
        self.trained_with = 0  # GPUs of its last run
        self.run_since_s = 0.0  # when the present run began to make progress
        self.special = False  # it is given other than proportional CPUs or memory
        self.start = -1  # number of its present run; below 0 when it does not run
        self.seen: Seen | None = None  # what there was to see of it while it ran
        self.length: Length | None = None  # what is believed of its length, if nobody told
        self.reported_s = -1.0  # when it last said how far it is; below 0: never, and the model is believed
        self.pace = 1.0  # measured speed / speed by the model, of a job without a profile
        self.trouble: Trouble | None = None  # what went wrong with it, and what keeps it from running

    @property
    def attempt(self) -> int:
        """Number of its latest start, from 1 on; 0 before the first."""
        return 0 if self.first_start_s is None else self.restarts + 1

    def remaining_at(self, now_s: float) -> float:
        """Samples left."""
        ran = now_s - self.since
        left = self.remaining - self.rate * ran if ran > 0 else self.remaining
        return left if left > 0 else 0.0

    def remaining_s(self, now_s: float) -> float:
        """Predicted seconds left if it ran with what it asked for."""
        return self.remaining_at(now_s) / self.reference_rate

    def done_at(self, now_s: float) -> float:
        """Samples done, which may be more than was believed to be all."""
        if self.length is None:
            return self.total - self.remaining_at(now_s)
        return self.length.done + self.rate * max(0.0, now_s - self.since)

    def attained_gpu_s(self, now_s: float) -> float:
        """GPU-seconds it ran with so far; while it waits for others to leave its nodes it gets none."""
        return self.attained + self.given * (now_s - self.given_since) if self.rate else self.attained

    def executed_s(self, now_s: float) -> float:
        """Seconds it ran so far."""
        return self.executed + (now_s - self.given_since if self.given and self.rate else 0.0)

    def copy(self) -> Record:
        """Return an independent copy."""
        work = self.total, self.reference_rate, self.ideal_s
        twin = Record(self.job, self.seq, self.type_index, work, self.arrival_s, self.met)
        for name in ATTRIBUTES:
            setattr(twin, name, getattr(self, name))
        twin.seen = self.seen and self.seen.copy()
        twin.trouble = self.trouble and self.trouble.copy()
        twin.length = self.length and self.length.copy()
        return twin

    def begin_length(self, estimate: Estimate) -> Length:
        """Count samples done by themselves from now on, since the total may change."""
        self.length = Length(estimate)
        return self.length

    def see(self) -> Seen:
        """Return what was seen of it, to note more."""
        if self.seen is None:
            self.seen = Seen()
        return self.seen

    def reason(self) -> tuple[str, str]:
        """Why it is not running, as a stable word and for people."""
        trouble = self.trouble
        if trouble is None:
            return "", ""
        if trouble.unfit and self.state is WAITING:
            return UNSCHEDULABLE, trouble.unfit
        return trouble.code, trouble.text

    def troubles(self) -> Trouble:
        """Return what went wrong with it, to note more."""
        if self.trouble is None:
            self.trouble = Trouble()
        return self.trouble
