"""Carrying plans out: jobs start as soon as nobody is left on their nodes, are retuned in place, or stop."""

from __future__ import annotations

from trainyard.core.instructions import RETUNE, START, STOP, Do
from trainyard.core.lengths import Lengths
from trainyard.core.progress import lr_factor, note_checkpoint, settle
from trainyard.core.story import RESUMED, STARTED, Story
from trainyard.errors import InputError, TransitionError
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.state.jobs import JobTable
from trainyard.state.lifecycle import AFTER, State
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

# Python 3.11 looks members of classes up slowly, and these are needed all the time.
WAITING, RUNNING, STOPPING = State.WAITING, State.RUNNING, State.STOPPING


class Carrier:
    """6 and 7. The part of a yard (only that derives from it) that turns its target into instructions."""

    rules: Rules
    speed: SpeedModel
    story: Story
    table: JobTable
    lengths: Lengths
    records: dict[str, Record]
    target: dict[str, Allocation]
    pending: dict[str, None]
    _leaving: dict[str, int]
    _view: Snapshot
    out: list[Do]
    _changed: list[Record]
    _runs: int  # numbered so far

    def _start_pending(self, now: float) -> None:
        pending, records, target, leaving = self.pending, self.records, self.target, self._leaving
        for job_id in list(pending):
            allocation = target[job_id]
            if leaving and self._blocked(allocation):
                continue
            record = records[job_id]
            if record.state is not STOPPING:
                del pending[job_id]
                if record.state is RUNNING:
                    self._retune(record, allocation, now)
                else:
                    self._changed.append(record)
                    self._start(record, allocation, now)

    def _blocked(self, allocation: Allocation) -> bool:
        """Whether some job is still stopping on one of its nodes."""
        leaving = self._leaving
        for share in allocation.shares:  # noqa: SIM110 - any() over a generator takes three times as long
            if share[0] in leaving:
                return True
        return False

    def _start(self, record: Record, allocation: Allocation, now: float) -> None:
        """Start a job that waits; that it changed has been noted."""
        gpus, factor, job_id = allocation.gpus, 1.0, record.job_id
        if record.first_start_s is None:
            record.first_start_s, since, step = now, now + self.rules.start_s, STARTED
        else:
            since, step = now + self._view.restart_cost(record.job), RESUMED
            record.restarts += 1
            factor = lr_factor(record, gpus)
        record.trained_with = gpus
        record.occupies = allocation
        record.rate = rate = self.speed.rate(record.job, allocation) * record.pace
        if not rate > 0:
            raise _never_ends(record.job, allocation)
        record.since = record.run_since_s = since
        record.saved = left = record.remaining
        record.state = RUNNING
        self._runs = record.start = self._runs + 1  # what is said of its earlier runs is void from now on
        if record.length is not None:
            record.length.saved = record.length.done
            self.lengths.watch(record)
        self.story.append((now, job_id, step, allocation))
        self.out.append((START, record, allocation, rate, since + left / rate, factor))

    def _retune(self, record: Record, allocation: Allocation, now: float) -> None:
        """CPUs or memory change under the same workers: free, and at once."""
        note_checkpoint(record, now)
        left = settle(record, now)
        record.rate = rate = self.speed.rate(record.job, allocation) * record.pace
        if not rate > 0:
            raise _never_ends(record.job, allocation)
        record.occupies = allocation
        self._runs = record.start = self._runs + 1
        if record.length is not None:
            self.lengths.watch(record)
        self._changed.append(record)
        self._change(record, RUNNING, now, "CPUs or memory change", allocation)
        self.out.append((RETUNE, record, allocation, rate, record.since + left / rate))

    def _stop(self, record: Record, now: float, step: int) -> None:
        """Tell a running job to stop; the step says why."""
        settle(record, now)
        record.rate = 0.0
        record.start = -1
        self._changed.append(record)
        record.state, occupied, leaving = STOPPING, record.occupies, self._leaving
        self.story.append((now, record.job_id, step, occupied))
        assert occupied is not None
        for share in occupied.shares:
            node = share[0]
            leaving[node] = leaving.get(node, 0) + 1
        self.out.append((STOP, record))

    def _vacate(self, record: Record) -> bool:
        """The processes of a stopping job are gone; return whether another job may wait for its nodes."""
        occupied, leaving, opened = record.occupies, self._leaving, False
        record.occupies = None
        assert occupied is not None
        for share in occupied.shares:
            node = share[0]
            left = leaving[node] - 1
            if left:
                leaving[node] = left
            else:
                del leaving[node]
                opened = True
        return opened

    def _change(
        self, record: Record, after: State, now: float, cause: str, allocation: Allocation | None = None
    ) -> None:
        before, job_id = record.state, record.job_id
        if after not in AFTER[before]:
            raise refusal(record, after)
        record.state = after
        self.story.append((now, job_id, self.story.step(before, after, cause), allocation))


def refusal(record: Record, after: State) -> TransitionError:
    """Return why a job does not get into this state."""
    return TransitionError(f"job {record.job_id} cannot go from {record.state} to {after}")


def _never_ends(job: Job, allocation: Allocation) -> InputError:
    where = ", ".join(f"{share.gpus} GPUs of {share.node}" for share in allocation.shares)
    return InputError(f"job {job.job_id}: its profile gives 0 samples/s on {where}; it would never end")
