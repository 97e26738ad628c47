"""The core: events in, instructions out. No I/O, no clock; it cannot tell simulated time from real time.

Two views of the cluster are kept apart. The *target* is what the last plan wants: it is what policies see
and what plans are checked against. What jobs *occupy* follows as stops are confirmed: a start waits until no
job that is still stopping sits on its nodes.

The numbers in comments are the steps by which an event becomes instructions (docs/architecture.md). 1: every
event is one method. 2: it notes in the journal (`_changed`) whose record it changed. What has to be done goes
to `out`, as plain tuples (`core/instructions.py`); `handle` takes an event as an object and returns
instructions as objects, for whoever prefers these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from trainyard.core.carry_out import Carrier, refusal
from trainyard.core.check import check_plan, plain_start, plain_turns
from trainyard.core.events import (
    DecisionDue,
    Event,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import DECIDE_AT, ENDED, KILL, Do, Instruction, as_objects
from trainyard.core.progress import roll_back
from trainyard.core.story import ALL_DONE, ARRIVED, PREEMPTED, STOPPED, Story
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.state.jobs import JobTable
from trainyard.state.journal import KEPT
from trainyard.state.lifecycle import AFTER, State
from trainyard.state.queue import Queue
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.seen import restored
from trainyard.state.snapshot import Snapshot

if TYPE_CHECKING:
    from trainyard.files.schemas import BooksEntry

# Python 3.11 looks members of classes up slowly, and these are needed all the time.
WAITING, RUNNING, STOPPING = State.WAITING, State.RUNNING, State.STOPPING
DONE, CANCELLED = State.DONE, State.CANCELLED
MOST_CACHES = 64  # stages of so many policies may keep something


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
        self.records = self.table.of
        self.target: dict[str, Allocation] = {}  # by job; shared with the snapshot
        self.waiting = Queue()
        self.free = Room.all_of(self.nodes)
        self.down: set[str] = set()
        self.out: list[Do] = []
        self._decide = decide
        self._seq = 0
        self._met = 0.0  # integral of the number of active jobs over time, up to `_met_at`
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
        self._changed = self.table.changed.entries
        self._runs = 0
        self._wake_s = inf  # when the policy wants to be asked again

    def handle(self, event: Event) -> list[Instruction]:
        """Take in one event and return what has to be done about it."""
        self.out = []
        HANDLERS[type(event)](self, event)
        return as_objects(self.out)

    def snapshot(self, now_s: float) -> Snapshot:
        """Return what a policy sees at this moment; it shares its parts with the yard: fork it to keep it."""
        view = self._view
        view.now_s, view.met = now_s, self._met + len(self.table.records) * (now_s - self._met_at)
        if len(view.caches) > MOST_CACHES:  # of policies that only looked
            view.caches.clear()
        return view

    def adopt(self, record: Record, allocation: Allocation | None, seen: Mapping[str, Any]) -> None:
        """Take in a job in the middle of its life, with what it holds and what was seen of it."""
        self._seq = max(self._seq, record.seq)
        self.table.add(record)
        record.seen = restored(seen)
        if allocation is None:
            self.waiting.add(record)
            return
        self._target(record, allocation, record.given_since)
        record.rate = seen.get("rate", self.speed.rate(record.job, allocation))
        if not record.rate:  # it was given GPUs that others still had to leave
            self.pending[record.job_id] = None
            return
        record.state, record.occupies = RUNNING, allocation
        self._runs = record.start = self._runs + 1

    def start_pending(self, now_s: float) -> list[Instruction]:
        """Start what was given GPUs before, as far as no job is still stopping there."""
        self.out = []
        self._start_pending(now_s)
        return as_objects(self.out)

    def set_books(self, now_s: float, books: BooksEntry) -> None:
        """Go on at a moment of an earlier life, after all its jobs were taken in."""
        view, target = self._view, books["target"]
        self._met, self._met_at, view.said = books["met"], now_s, books["said"]
        if "version" in books:
            self.table.go_on_at(int(books["version"]) - view.node_events)
        self.free.cpus[:], self.free.memory_gb[:] = books["free_cpus"], books["free_memory_gb"]
        in_order = {job_id: self.target[job_id] for job_id in target}
        self.target.clear()
        self.target.update(in_order)

    # -- jobs come and go ---------------------------------------------------------------------------------

    def submit(self, now: float, job: Job) -> None:
        """A user handed in a job."""
        job_id = job.job_id
        if job_id in self.records:
            raise TrainyardError(f"job {job_id} is active already")
        if now != self._met_at:
            self._meet(now)
        self._seq = seq = self._seq + 1
        type_index = self.nodes.type_index[job.gpu_type] if job.gpu_type else -1
        record = Record(job, seq, type_index, self.speed.work(job), now, self._met)
        self.table.add(record)
        self.story.append((now, job_id, ARRIVED, None))
        self.waiting.add(record)

    def finish(self, now: float, record: Record, state: State = DONE, cause: str = "ended by itself") -> None:
        """A job is over, well or badly."""
        job_id, before, step = record.job_id, record.state, ALL_DONE
        if state is not DONE or before is not RUNNING:
            if state not in AFTER[before]:
                raise refusal(record, state)
            step = self.story.step(before, state, "all work done" if state is DONE else cause)
        record.state, record.start = state, -1
        self.story.append((now, job_id, step, None))
        if job_id in self.target:
            self._untarget(record, now)
        else:
            self.waiting.remove(record)
        if before is STOPPING:
            self._vacate(record)
        table, lived = self.table, now - record.arrival_s
        if now != self._met_at:
            self._meet(now)
        met = (self._met - record.met) / lived if lived > 0 else float(len(table))
        crowding = record.gpus * met / self._all_gpus
        self.out.append((ENDED, record, state, now, record.ideal_s * (crowding if crowding > 1.0 else 1.0)))
        table.remove(record)
        if self.pending:
            self._start_pending(now)

    def cancel(self, now: float, record: Record) -> None:
        """A user withdrew a job."""
        if record.state in (RUNNING, STOPPING):
            self.out.append((KILL, record))
        self.finish(now, record, CANCELLED, "cancelled by its user")

    def stopped(self, now: float, records: Sequence[Record]) -> None:
        """Jobs that were told to stop are gone."""
        opened = False
        for record in records:  # all of them before anything changes
            if record.state is not STOPPING:
                raise refusal(record, WAITING)
        for record in records:
            record.state = WAITING
            self.story.append((now, record.job_id, STOPPED, None))
            opened |= self._vacate(record) or record.job_id in self.pending
        if opened:
            self._start_pending(now)

    def progress(self, now: float, record: Record, remaining: float, loss: float | None) -> None:
        """A running job says how much is left."""
        since = record.since
        done = record.remaining - remaining
        if record.occupies is not None and record.job.elastic and now > since and done > 0:
            record.see().ran_at((record.occupies.gpus, record.occupies.servers), now - since, done)
        record.remaining = remaining
        record.since = max(since, now)
        self._changed.append(record)
        self._view.reports += 1
        if loss is not None:
            record.see().reported(record.total - remaining, loss)

    # -- nodes --------------------------------------------------------------------------------------------

    def node_failed(self, now: float, node: str) -> None:
        """A node is gone, and with it all that ran there since the last checkpoints."""
        if node in self.down:
            return
        cause = f"node {node} failed"
        for record in [r for r in self.records.values() if self._uses(r, node)]:
            if record.job_id in self.target:
                self._untarget(record, now)
                self.waiting.add(record)
            if record.occupies is not None:
                roll_back(record, now)
                self._changed.append(record)
                if record.state is STOPPING:
                    self._vacate(record)
                self._change(record, WAITING, now, cause)
                record.occupies, record.start = None, -1
                self.out.append((KILL, record))
        self.down.add(node)
        self._set_capacity(node, -1)
        self._start_pending(now)

    def node_repaired(self, now: float, node: str) -> None:
        """A node is back, empty."""
        if node in self.down:
            self.down.remove(node)
            self._set_capacity(node, +1)

    def _uses(self, record: Record, node: str) -> bool:
        given_or_occupied = (self.target.get(record.job_id), record.occupies)
        return any(share.node == node for a in given_or_occupied if a is not None for share in a.shares)

    def _set_capacity(self, node: str, sign: int) -> None:
        """Nothing runs on the node at this moment: take all of it out, or put all of it back."""
        i = self.nodes.index[node]
        gpus = int(self.nodes.gpus[i])
        self.free.add(i, sign * gpus, sign * float(self.nodes.cpus[i]), sign * float(self.nodes.memory_gb[i]))
        self.up_gpus += sign * gpus
        self._view.up_gpus = self.up_gpus
        up = self._view.up = self._view.up.copy()
        up[i] = sign > 0
        self._view.freed += 1
        self._view.node_events += 1

    # -- decisions ----------------------------------------------------------------------------------------

    def decide(self, now: float) -> None:
        """3. Ask the policy for a plan and make it the target."""
        snapshot = self._view
        if now != self._met_at:
            self._meet(now)
        snapshot.now_s, snapshot.met = now, self._met
        changes, wake_s, notes, _ = self._decide(snapshot)
        if notes:
            snapshot.said = notes
        if changes:
            self._apply(changes, now)
        if len(self._changed) > KEPT:
            self.table.changed.trim()
            self.story.pack()
        if wake_s != self._wake_s:
            self._wake_s = wake_s if wake_s > now else inf
            self.out.append((DECIDE_AT, None, self._wake_s))

    def _apply(self, changes: Mapping[str, Allocation | None], now: float) -> None:
        """5. Make the plan the target: first everything that is taken, then everything that is given."""
        if len(changes) == 1:  # and most often one job just starts
            ((job_id, alone),) = changes.items()
            record = self.records.get(job_id)
            if record is not None and alone is not None and plain_start(self._view, record, alone):
                self._give(record, alone, now)
                return
        turns = plain_turns(self._view, changes)
        if turns is not None:  # as most plans are
            for record in turns[0]:
                self._untarget(record, now)
                self._retarget(record, None, now)
            for record, allocation in turns[1]:
                self._give(record, allocation, now)
            return
        # 4. Before anything changes; most plans are looked at more quickly above.
        check_plan(self._view, changes)
        records, target = self.records, self.target
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
        self.waiting.remove(record)
        self._target(record, allocation, now)
        if record.state is WAITING and not (self._leaving and self._blocked(allocation)):
            self._start(record, allocation, now)
        else:
            self.pending[record.job_id] = None

    def _retarget(self, record: Record, after: Allocation | None, now: float) -> None:
        """Change or take away what a job had been given."""
        running = record.state is RUNNING
        if after is None:
            self.waiting.add(record)
            if running:
                record.preemptions += 1
                self._stop(record, now, PREEMPTED)
            return
        self._target(record, after, now)
        self.pending[record.job_id] = None
        # With the same seats it goes on, but may have to wait for another job to make room.
        if running and record.occupies is not None and record.occupies.seats != after.seats:
            self._stop(record, now, self.story.step(RUNNING, STOPPING, "its workers change"))

    def _untarget(self, record: Record, now: float) -> None:
        """Take a job's allocation out of the target, settling what it attained."""
        self._view.freed += 1
        job_id, given = record.job_id, record.given
        allocation = self.target.pop(job_id)
        self.free.give(self.nodes, allocation)
        if record.special:
            self._special -= 1
            self.free.plain = not self._special
            record.special = False
        if self.pending:
            self.pending.pop(job_id, None)
        spent = now - record.given_since
        record.attained += given * spent
        record.executed += spent
        if given != record.gpus:
            self.table.resized -= 1
        record.given = 0
        self._changed.append(record)
        if self._several_types:
            record.see().held(self.nodes.workers_by_type(allocation), spent)

    def _target(self, record: Record, allocation: Allocation, now: float) -> None:
        self.target[record.job_id] = allocation
        record.given = given = allocation.gpus
        self.free.take(self.nodes, allocation)
        if not allocation.plain and not self.nodes.is_proportional(allocation):
            record.special = True
            self._special += 1
            self.free.plain = False
        if given != record.gpus:
            self.table.resized += 1
        record.given_since = now
        self._changed.append(record)

    # -- bookkeeping --------------------------------------------------------------------------------------

    def _meet(self, now: float) -> None:
        """Integrate the number of active jobs over time."""
        self._met += len(self.table.records) * (now - self._met_at)
        self._met_at = now


def _progress(yard: Yard, event: ProgressReported) -> None:
    record = yard.records[event.job_id]
    yard.progress(event.time_s, record, event.remaining_samples, event.loss)


HANDLERS: dict[type, Callable[[Yard, Any], None]] = {
    JobSubmitted: lambda yard, event: yard.submit(event.time_s, event.job),
    JobFinished: lambda yard, e: yard.finish(e.time_s, yard.records[e.job_id], e.outcome),
    JobStopped: lambda yard, event: yard.stopped(event.time_s, [yard.records[event.job_id]]),
    JobCancelled: lambda yard, event: yard.cancel(event.time_s, yard.records[event.job_id]),
    ProgressReported: _progress,
    NodeFailed: lambda yard, event: yard.node_failed(event.time_s, event.node),
    NodeRepaired: lambda yard, event: yard.node_repaired(event.time_s, event.node),
    DecisionDue: lambda yard, event: yard.decide(event.time_s),
}
