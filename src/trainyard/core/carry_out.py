"""Carrying plans out: jobs start as soon as nobody is left on their nodes, are retuned in place, or stop."""

from __future__ import annotations

from trainyard.core.instructions import RETUNE, START, STOP, Do
from trainyard.core.lengths import Lengths
from trainyard.core.progress import lr_factor, note_checkpoint, settle
from trainyard.core.real.seats import Seats
from trainyard.core.real.timers import Timers
from trainyard.core.story import RESUMED, STARTED, Story
from trainyard.errors import TransitionError
from trainyard.model.allocation import Allocation
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
    leaving: dict[str, int]  # node -> jobs whose processes are to leave it
    seats: Seats | None
    timers: Timers
    view: Snapshot
    out: list[Do]
    _changed: list[Record]
    _runs: int  # numbered so far

    def go_on(self, now: float) -> None:
        """Start or retune what was planned before, as far as nobody is left on its nodes."""
        pending, records, target, leaving = self.pending, self.records, self.target, self.leaving
        for job_id in list(pending):
            allocation = target[job_id]
            if leaving and self._blocked(allocation):
                continue
            record = records[job_id]
            state = record.state
            if state is WAITING:
                del pending[job_id]
                record.given_since = now  # while it waited it had nothing
                self._changed.append(record)
                self._start(record, allocation, now)
            elif state is RUNNING:
                del pending[job_id]
                self._retune(record, allocation, now)

    def _blocked(self, allocation: Allocation) -> bool:
        """Whether some job is still stopping on one of its nodes."""
        leaving = self.leaving
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
            since, step = now + self.view.restart_cost(record.job), RESUMED
            record.restarts += 1
            factor = lr_factor(record, gpus)
        record.trained_with = gpus
        record.occupies = allocation
        record.rate = rate = self.speed.rate(record.job, allocation) * record.pace
        record.since = record.run_since_s = since
        record.saved = left = record.remaining
        record.state = RUNNING
        self._runs = record.start = self._runs + 1  # what is said of its earlier runs is void from now on
        if record.length is not None:
            record.length.saved = record.length.done
            self.lengths.watch(record)
        self.story.append((now, job_id, step, allocation))
        if record.job.terms is not None:
            self.timers.limit(record)
        if self.seats is None:
            self.out.append((START, record, allocation, rate, since + left / rate, factor))
        else:
            taken = self.seats.take(job_id, allocation)
            self.out.append((START, record, allocation, rate, since + left / rate, factor, taken))

    def _retune(self, record: Record, allocation: Allocation, now: float) -> None:
        """CPUs or memory change under the same workers: free, and at once."""
        note_checkpoint(record, now)
        left = settle(record, now)
        record.rate = rate = self.speed.rate(record.job, allocation) * record.pace
        record.occupies = allocation
        self._runs = record.start = self._runs + 1
        if record.length is not None:
            self.lengths.watch(record)
        self._changed.append(record)
        self.change(record, RUNNING, now, "CPUs or memory change", allocation)
        self.out.append((RETUNE, record, allocation, rate, record.since + left / rate))

    def stop(self, record: Record, now: float, step: int) -> None:
        """Tell a running job to stop; the step says why."""
        if record.job.terms is not None:
            note_checkpoint(record, now)  # it may stop without saving
        settle(record, now)
        record.rate = 0.0
        record.start = -1
        self._changed.append(record)
        record.state, occupied = STOPPING, record.occupies
        self.story.append((now, record.job_id, step, occupied))
        self.leave(record)
        if record.trouble is None:
            self.out.append((STOP, record))
        else:
            self.out.append((STOP, record, record.trouble.patience(self.rules.many_unsaved)))

    def leave(self, record: Record) -> None:
        """Nobody starts on a job's nodes until its processes are gone."""
        occupied, leaving = record.occupies, self.leaving
        assert occupied is not None
        for share in occupied.shares:
            node = share[0]
            leaving[node] = leaving.get(node, 0) + 1

    def vacate(self, record: Record) -> bool:
        """The processes of a job that had to leave are gone; return whether one of its nodes is clear now."""
        occupied, trouble, opened = record.occupies, record.trouble, False
        record.occupies = None
        assert occupied is not None
        if record.state is not RUNNING:  # else it never had to leave
            for share in occupied.shares:
                if trouble is None or trouble.on is None or share[0] in trouble.on:
                    opened |= self.left(share[0])
        if trouble is not None:
            trouble.on = None
        if self.seats is not None:
            self.seats.give_back(record.job_id)
        return opened

    def left(self, node: str) -> bool:
        """One job less has to leave a node; return whether all have."""
        count = self.leaving[node] - 1
        if count:
            self.leaving[node] = count
            return False
        del self.leaving[node]
        return True

    def note(self, record: Record) -> None:
        """Remember that a record changed."""
        if record.row >= 0:
            self._changed.append(record)

    def change(
        self, record: Record, after: State, now: float, cause: str, allocation: Allocation | None = None
    ) -> None:
        """Let a job go from its state to another, and write it down."""
        before, job_id = record.state, record.job_id
        if after not in AFTER[before]:
            raise refusal(record, after)
        record.state = after
        self.story.append((now, job_id, self.story.step(before, after, cause), allocation))


def refusal(record: Record, after: State) -> TransitionError:
    """Return why a job does not get into this state."""
    return TransitionError(f"job {record.job_id} cannot go from {record.state} to {after}")
