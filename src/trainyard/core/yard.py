"""The core: events in, instructions out. No I/O, no clock; it cannot tell simulated time from real time.

Two views of the cluster are kept apart. The *target* is what the last plan wants: it is what policies see
and what plans are checked against. What jobs *occupy* follows as stops are confirmed: a start waits until no
job that is still stopping sits on its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trainyard.core.carry_out import Carrier
from trainyard.core.check import check_plan
from trainyard.core.events import (
    DecisionDue,
    Ended,
    Event,
    Instruction,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
    Kill,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
    Wake,
)
from trainyard.core.progress import roll_back
from trainyard.core.record import Record
from trainyard.core.states import State
from trainyard.core.story import Story
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.rules import Rules
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.state.jobs import Column, JobTable, Row
from trainyard.state.queue import Queue
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot

# Python 3.11 looks members of classes up slowly, and these are needed all the time.
SUBMITTED, WAITING, RUNNING, STOPPING = State.SUBMITTED, State.WAITING, State.RUNNING, State.STOPPING
DONE, CANCELLED = State.DONE, State.CANCELLED
REMAINING, RATE, SINCE = Column.REMAINING, Column.RATE, Column.SINCE
GIVEN, GIVEN_SINCE = Column.GIVEN, Column.GIVEN_SINCE
ATTAINED, EXECUTED, RESTARTS = Column.ATTAINED, Column.EXECUTED, Column.RESTARTS


class Yard(Carrier):
    """All active jobs of one cluster, and the policy that decides about them."""

    def __init__(
        self,
        cluster: Cluster,
        decide: Callable[[Snapshot], Plan],
        rules: Rules | None = None,
        speed: SpeedModel | None = None,
    ) -> None:
        self.cluster = cluster
        self.rules = rules or Rules()
        self.nodes = NodeTable(cluster)
        self.speed = speed or SpeedModel(cluster)
        self.story = Story()
        self.table = JobTable()
        self.records: dict[str, Record] = {}
        self.target: dict[str, Allocation] = {}  # by job; shared with the snapshot
        self.waiting = Queue()
        self.free = Room.all_of(self.nodes)
        self.down: set[str] = set()
        self._decide = decide
        self._seq = 0
        self._met = 0.0
        self._met_at = 0.0
        self._all_gpus = cluster.gpus
        self.up_gpus = self._all_gpus
        self.pending: dict[str, None] = {}  # planned, not yet started; in the order of the plan
        self._leaving: dict[str, int] = {}  # node -> jobs still stopping there
        self._view = Snapshot(
            0.0,
            self.nodes,
            self.speed,
            self.table,
            self.waiting,
            self.target,
            self.free,
            np.ones(len(cluster.nodes), dtype=np.bool_),
            Sensitivity(cluster, self.speed),
            rules=self.rules,
        )
        self._several_types = len(self.nodes.types) > 1
        self._special = 0  # running jobs with CPUs or memory of their own choice
        self._out: list[Instruction] = []

    def handle(self, event: Event) -> list[Instruction]:
        """Take in one event and return what has to be done about it."""
        self._out = []
        HANDLERS[type(event)](self, event)
        return self._out

    def snapshot(self, now_s: float) -> Snapshot:
        """Return what a policy sees at this moment; it shares arrays with the yard, so fork it to keep it."""
        self._meet(now_s)
        self.free.plain = not self._special
        view = self._view
        view.now_s, view.up_gpus, view.met = now_s, self.up_gpus, self._met
        return view

    # -- jobs come and go ---------------------------------------------------------------------------------

    def _submitted(self, event: JobSubmitted) -> None:
        job, now = event.job, event.time_s
        job_id = job.job_id
        if job_id in self.records:
            raise TrainyardError(f"job {job_id} is active already")
        self._meet(now)
        self._seq = seq = self._seq + 1
        total, rate, ideal_s = self.speed.work(job)
        met = self._met
        self.records[job_id] = Record(job, seq, ideal_s, now, met, total)
        type_ = self.nodes.type_index[job.gpu_type] if job.gpu_type else -1
        asked = seq, now, job.gpus, job.least_gpus, job.most_gpus, job.weight, type_
        self.table.add(job, Row(*asked, total, rate, remaining=total, since=now, given_since=now, met=met))
        self.story.append((now, job_id, None, SUBMITTED, "submitted", None))
        self.story.append((now, job_id, SUBMITTED, WAITING, "accepted", None))
        self.waiting.add(seq, job_id)

    def _finished(self, event: JobFinished) -> None:
        record = self.records[event.job_id]
        cause = "all work done" if event.outcome is DONE else "ended by itself"
        self._leave(record, event.outcome, event.time_s, cause)

    def _cancelled(self, event: JobCancelled) -> None:
        record = self.records[event.job_id]
        if record.state in (RUNNING, STOPPING):
            self._out.append(Kill(event.job_id))
        self._leave(record, CANCELLED, event.time_s, "cancelled by its user")

    def _stopped(self, event: JobStopped) -> None:
        record = self.records[event.job_id]
        self._change(record, WAITING, event.time_s, "stopped and saved")
        if self._vacate(record) or event.job_id in self.pending:
            self._start_pending(event.time_s)

    def _progress(self, event: ProgressReported) -> None:
        cells, row = self.table.cells, self.table.row_of[event.job_id]
        record, since = self.records[event.job_id], cells[SINCE][row]
        done = cells[REMAINING][row] - event.remaining_samples
        if record.occupies is not None and record.job.elastic and event.time_s > since and done > 0:
            size = record.occupies.gpus, record.occupies.servers
            self._view.observed.ran(event.job_id, size, event.time_s - since, done)
        cells[REMAINING][row] = event.remaining_samples
        cells[SINCE][row] = max(since, event.time_s)
        if self.waiting.journal is not None:
            self.waiting.journal.append(event.job_id)  # a stopping job's place in line may change
        if event.loss is not None:
            done = cells[Column.TOTAL][row] - event.remaining_samples
            self._view.observed.reported(event.job_id, done, event.loss)

    def _leave(self, record: Record, state: State, now: float, cause: str) -> None:
        """A job is over, one way or another."""
        job_id = record.job.job_id
        self._change(record, state, now, cause)
        if job_id in self.target:
            self._untarget(record, now)
        else:
            self.waiting.remove(record.seq, job_id)
        if record.stopping:
            self._vacate(record)
        self._meet(now)
        lived = now - record.submitted_s
        met = (self._met - record.met) / lived if lived > 0 else float(len(self.table))
        crowding = max(1.0, record.job.gpus * met / self._all_gpus)
        cells, row = self.table.cells, self.table.row_of[job_id]
        left = cells[REMAINING][row] - cells[RATE][row] * max(now - cells[SINCE][row], 0.0)
        self._out.append(
            Ended(
                record.job,
                state,
                now,
                record.first_start_s,
                record.ideal_s,
                record.ideal_s * crowding,
                cells[ATTAINED][row],
                int(cells[RESTARTS][row]),
                record.preemptions,
                max(left, 0.0) / cells[Column.TOTAL][row],
            )
        )
        self.table.remove(job_id)
        if record.job.elastic or self._several_types:
            self._view.observed.forget(job_id)
        del self.records[job_id]
        if self.pending:
            self._start_pending(now)

    # -- nodes --------------------------------------------------------------------------------------------

    def _node_failed(self, event: NodeFailed) -> None:
        if event.node in self.down:
            return
        now, cause = event.time_s, f"node {event.node} failed"
        for record in [r for r in self.records.values() if self._uses(r, event.node)]:
            if record.job.job_id in self.target:
                self._untarget(record, now)
                self.waiting.add(record.seq, record.job.job_id)
            if record.occupies is not None:
                roll_back(self.table, record, now)
                self._change(record, WAITING, now, cause)
                self._vacate(record)
                self._out.append(Kill(record.job.job_id))
        self.down.add(event.node)
        self._set_capacity(event.node, -1)
        self._start_pending(now)

    def _node_repaired(self, event: NodeRepaired) -> None:
        if event.node in self.down:
            self.down.remove(event.node)
            self._set_capacity(event.node, +1)

    def _uses(self, record: Record, node: str) -> bool:
        given_or_occupied = (self.target.get(record.job.job_id), record.occupies)
        return any(share.node == node for a in given_or_occupied if a is not None for share in a.shares)

    def _set_capacity(self, node: str, sign: int) -> None:
        """Nothing runs on the node at this moment: take all of it out, or put all of it back."""
        i = self.nodes.index[node]
        gpus = int(self.nodes.gpus[i])
        self.free.add(i, sign * gpus, sign * float(self.nodes.cpus[i]), sign * float(self.nodes.memory_gb[i]))
        self.up_gpus += sign * gpus
        up = self._view.up = self._view.up.copy()
        up[i] = sign > 0
        self._view.still = False

    # -- decisions ----------------------------------------------------------------------------------------

    def _decision_due(self, event: DecisionDue) -> None:
        snapshot = self.snapshot(event.time_s)
        plan = self._decide(snapshot)
        if plan.changes:
            self._apply(plan.changes, snapshot)
        if plan.wakes:
            self._out += [Wake(job_id, at) for job_id, at in plan.wakes if at > snapshot.now_s]
        self._view.still = True

    def _apply(self, changes: Mapping[str, Allocation | None], snapshot: Snapshot) -> None:
        """Make the plan the target: first everything that is taken, then everything that is given."""
        check_plan(snapshot, changes)
        now, records, target = snapshot.now_s, self.records, self.target
        taken: list[tuple[Record, Allocation | None]] = []
        given: list[tuple[Record, Allocation]] = []
        for job_id, after in changes.items():
            before = target.get(job_id)
            if before is None:
                if after is not None:
                    given.append((records[job_id], after))
            elif before != after:
                taken.append((records[job_id], after))
        for record, _ in taken:
            self._untarget(record, now)
        moved = False
        for record, after in taken:
            self._retarget(record, after, now)
            moved |= after is not None
        for record, allocation in given:
            self._give(record, allocation, now)
        if moved:  # those that only stop make no room yet
            self._start_pending(now)

    def _give(self, record: Record, allocation: Allocation, now: float) -> None:
        """Start a job that waits, at once or as soon as there is room."""
        job_id = record.job.job_id
        self.waiting.remove(record.seq, job_id)
        self._target(record, allocation, now)
        if record.state is WAITING and not (self._leaving and self._blocked(allocation)):
            self._start(record, allocation, now)
        else:
            self.pending[job_id] = None

    def _retarget(self, record: Record, after: Allocation | None, now: float) -> None:
        """Change or take away what a job had been given."""
        job_id, running = record.job.job_id, record.state is RUNNING
        if after is None:
            self.waiting.add(record.seq, job_id)
            record.preemptions += running
        else:
            self._target(record, after, now)
            self.pending[job_id] = None
            if running and record.occupies is not None and record.occupies.seats == after.seats:
                return  # it may have to wait for another job to make room
        if running:
            self._stop(record, now, "preempted" if after is None else "its workers change")

    def _untarget(self, record: Record, now: float) -> None:
        """Take a job's allocation out of the target, settling what it attained."""
        self._view.still = False
        job_id = record.job.job_id
        allocation = self.target.pop(job_id)
        self.free.give(self.nodes.index, allocation.shares)
        self.pending.pop(job_id, None)
        self._special -= record.special
        record.special = 0
        cells, row = self.table.cells, self.table.row_of[job_id]
        spent = now - cells[GIVEN_SINCE][row]
        cells[ATTAINED][row] += cells[GIVEN][row] * spent
        cells[EXECUTED][row] += spent
        cells[GIVEN][row] = 0.0
        if self._several_types:
            self._view.observed.held(job_id, self.nodes.workers_by_type(allocation), spent)

    def _target(self, record: Record, allocation: Allocation, now: float) -> None:
        job_id, nodes = record.job.job_id, self.nodes
        self.target[job_id] = allocation
        for node, gpus, _, cpus, memory_gb in allocation.shares:
            i = nodes.index[node]
            self.free.add(i, -gpus, -cpus, -memory_gb)
            cpus_each, memory_each = nodes.share_per_gpu[i]
            if cpus != gpus * cpus_each or memory_gb != gpus * memory_each:
                record.special = 1
        self._special += record.special
        cells, row = self.table.cells, self.table.row_of[job_id]
        cells[GIVEN][row] = allocation.gpus
        cells[GIVEN_SINCE][row] = now

    # -- bookkeeping --------------------------------------------------------------------------------------

    def _meet(self, now: float) -> None:
        """Integrate the number of active jobs over time."""
        if now != self._met_at:
            self._met += len(self.table.jobs) * (now - self._met_at)
            self._met_at = now


HANDLERS: dict[type, Callable[[Yard, Any], None]] = {
    JobSubmitted: Yard._submitted,
    JobFinished: Yard._finished,
    JobStopped: Yard._stopped,
    JobCancelled: Yard._cancelled,
    ProgressReported: Yard._progress,
    NodeFailed: Yard._node_failed,
    NodeRepaired: Yard._node_repaired,
    DecisionDue: Yard._decision_due,
}
