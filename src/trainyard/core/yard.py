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

from trainyard.core.carry_out import refusal
from trainyard.core.check import check_plan, plain_start, plain_turns
from trainyard.core.events import Event
from trainyard.core.handlers import take_in
from trainyard.core.instructions import DECIDE_AT, ENDED, Do, Instruction, as_objects
from trainyard.core.lengths import Lengths
from trainyard.core.real import nodes
from trainyard.core.real.conditions import Conditions
from trainyard.core.real.due import fire
from trainyard.core.real.nodes import count_up
from trainyard.core.real.over import Over
from trainyard.core.real.parking import tell_of_end
from trainyard.core.real.seats import Seats
from trainyard.core.real.timers import Timers
from trainyard.core.reports import Listener
from trainyard.core.story import ALL_DONE, ARRIVED, PREEMPTED, STOPPED, Story
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.policy.policy import Decides
from trainyard.state.corrections import Corrections
from trainyard.state.history import restored as past
from trainyard.state.jobs import JobTable
from trainyard.state.journal import KEPT
from trainyard.state.lifecycle import AFTER, State
from trainyard.state.queue import Queue
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.seen import restored
from trainyard.state.snapshot import Snapshot
from trainyard.state.usage import WEEK_S, Usage
from trainyard.state.usage import restored as restored_usage

if TYPE_CHECKING:
    from trainyard.files.schemas import BooksEntry

# Python 3.11 looks members of classes up slowly, and these are needed all the time.
WAITING, RUNNING, STOPPING = State.WAITING, State.RUNNING, State.STOPPING
KILLING, DONE = State.KILLING, State.DONE
MOST_CACHES = 64  # stages of so many policies may keep something


class Yard(Listener):
    """All active jobs of one cluster, and the policy that decides about them."""

    def __init__(
        self,
        cluster: Cluster,
        decide: Callable[[Snapshot], Plan],
        rules: Rules | None = None,
        speed: SpeedModel | None = None,
        *,
        half_life_s: float | None = None,
        indices: bool = False,
        remember: int = 0,
        policies: Callable[[str], Decides] | None = None,
    ) -> None:
        """Begin with an empty cluster.

        `indices`: the core chooses which GPUs of a node a job gets; `remember`: how many jobs that are over
        it knows, for whoever comes after them or tries them again; `policies` finds a policy by its name.
        """
        self.cluster = cluster
        self.rules = rules or Rules()
        self.nodes = NodeTable(cluster)
        self.speed = self.model = speed or SpeedModel(cluster)  # as corrected by reports, and as it was
        self.corrections = Corrections()
        self.story = Story()
        self.table = JobTable()
        self.table.bound = int(any(tenant.bound for tenant in cluster.tenants.values()))
        self.lengths = Lengths()
        self.records = self.table.of
        self.target: dict[str, Allocation] = {}  # by job; shared with the snapshot
        self.waiting = Queue()
        self.free = Room.all_of(self.nodes)
        self.conditions = Conditions()
        self.out: list[Do] = []
        self.now_s = 0.0  # time of the latest event
        self.parked: dict[str, Record] = {}  # jobs that no policy sees: held, too early, or being ended
        self.over = Over(remember)
        self.timers = Timers()
        self.seats = Seats(self.nodes) if indices else None
        self.policies = policies
        self.refused = 0  # plans
        self.paused = False  # no policy is asked
        self.counted: dict[str, int] = {}  # GPUs that count as there, of nodes with less than all
        self.decider = decide
        self.seq = 0  # number of the job that came last
        self._met = 0.0  # integral of the number of active jobs over time, up to `_met_at`
        self._met_at = 0.0
        self.all_gpus = self.up_gpus = cluster.gpus
        self.pending: dict[str, None] = {}  # planned, not yet started; in the order of the plan
        self.leaving: dict[str, int] = {}  # node -> jobs still stopping there
        self.view = Snapshot(
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
            corrections=self.corrections,
        )
        counts = half_life_s is not None or cluster.tenants
        self.usage = self.view.usage = Usage(half_life_s or WEEK_S) if counts else None
        self.several_types = len(self.nodes.types) > 1
        self._special = 0  # running jobs with CPUs or memory of their own choice
        self._changed = self.table.changed.entries
        self._runs = 0
        self._wake_s = inf  # when the policy wants to be asked again
        self.said_s = inf  # when somebody was told to ask
        if cluster.reservations:
            nodes.reserve(self, cluster.reservations, 0.0)

    def handle(self, event: Event) -> list[Instruction]:
        """Take in one event, any event at any time, and return what has to be done about it."""
        self.out = []
        take_in(self, event)
        return as_objects(self.out)

    def snapshot(self, now_s: float) -> Snapshot:
        """Return what a policy sees at this moment; it shares its parts with the yard: fork it to keep it."""
        view = self.view
        view.now_s, view.met = now_s, self._met + len(self.table.records) * (now_s - self._met_at)
        view.history = self.lengths.history
        if len(view.caches) > MOST_CACHES:  # of policies that only looked
            view.caches.clear()
        return view

    def look_at(self, view: Snapshot) -> None:
        """Make the parts of a snapshot one's own."""
        self.view, self.table, self.records = view, view.table, view.table.of
        self.waiting, self.target, self.free = view.waiting, view.target, view.free
        self.usage = view.usage
        self._changed = view.table.changed.entries

    def adopt(self, record: Record, allocation: Allocation | None, seen: Mapping[str, Any]) -> None:
        """Take in a job in the middle of its life, with what it holds and what was seen of it."""
        self.seq = max(self.seq, record.seq)
        self.table.add(record)
        record.seen = restored(seen)
        if allocation is None:
            self.waiting.add(record)
            return
        self._target(record, allocation, record.given_since)
        record.rate = seen.get("rate", self.speed.rate(record.job, allocation) * record.pace)
        if not record.rate:  # it was given GPUs that others still had to leave
            self.pending[record.job_id] = None
            return
        record.state, record.occupies = RUNNING, allocation
        self._runs = record.start = self._runs + 1
        self.lengths.watch(record)

    def set_books(self, now_s: float, books: BooksEntry) -> None:
        """Go on at a moment of an earlier life, after all its jobs were taken in."""
        view, target = self.view, books["target"]
        self._met, self._met_at, view.said = books["met"], now_s, books["said"]
        if "usage" in books:
            self.usage = view.usage = restored_usage(books["usage"])
        view.decided_s = books.get("decided_s", -inf)
        if "version" in books:
            self.table.go_on_at(int(books["version"]) - view.node_events)
        self.lengths.history = past(books.get("history", ()))
        for i, amounts in enumerate(zip(books["free_cpus"], books["free_memory_gb"], strict=True)):
            self.free.restore(i, self.free.at(i)[0], *amounts)
        in_order = {job_id: self.target[job_id] for job_id in target}
        self.target.clear()
        self.target.update(in_order)

    # -- jobs come and go ---------------------------------------------------------------------------------

    def find(self, job_id: str) -> Record | None:
        """Return a job that is not over, whether policies see it or not."""
        return self.records.get(job_id) or self.parked.get(job_id)

    def submit(self, now: float, job: Job) -> Record:
        """A user handed in a job."""
        job_id = job.job_id
        if job_id in self.records:
            raise TrainyardError(f"job {job_id} is active already")
        if now != self._met_at:
            self.meet(now)
        type_index = self.nodes.type_index[job.gpu_type] if job.gpu_type else -1
        record = Record(job, self.seq + 1, type_index, self.speed.work(job), now, self._met)
        self.seq += 1  # nothing changes if it can never run
        if not record.total:  # nobody told its length
            self.lengths.begin(record)
        self.table.add(record)
        self.story.append((now, job_id, ARRIVED, None))
        self.waiting.add(record)
        return record

    def readmit(self, now: float, record: Record) -> None:
        """A job that was over waits again, with what it had saved."""
        self.meet(now)
        if record.length is None:
            record.remaining = min(record.saved, record.total)
        else:  # how it ended tells nothing of its length any more
            self.lengths.begin_again(record, self.speed.work(record.job)[0])
        self.change(record, WAITING, now, "tried again")
        self.believe_rate(record)
        self.table.add(record)
        self.waiting.add(record)

    def replace_job(self, record: Record, job: Job) -> None:
        """A user changed a job."""
        if record.row >= 0:
            self.table.replace(record, job)
        else:
            record.job = job
        self.believe_rate(record)

    def finish(self, now: float, record: Record, state: State = DONE, cause: str = "ended by itself") -> None:
        """A job is over, well or badly, and nothing is left of its processes."""
        job_id, before, step = record.job_id, record.state, ALL_DONE
        if state is not DONE or before is not RUNNING:
            if state not in AFTER[before]:
                raise refusal(record, state)
            step = self.story.step(before, state, "all work done" if state is DONE else cause)
        record.state, record.start = state, -1
        self.story.append((now, job_id, step, None))
        if job_id in self.target:
            self.untarget(record, now)
        elif record.row >= 0:
            self.waiting.remove(record)
        else:
            del self.parked[job_id]
        if before is not RUNNING:
            if before is STOPPING or before is KILLING:
                self.vacate(record)
        elif self.seats is not None:
            self.seats.give_back(job_id)
        table, lived = self.table, now - record.arrival_s
        if now != self._met_at:
            self.meet(now)
        if record.length is not None or self.lengths.history is not None:
            self.lengths.ended(record, now, state)
        met = (self._met - record.met) / lived if lived > 0 else float(len(table))
        crowding = record.gpus * met / self.all_gpus
        self.out.append((ENDED, record, state, now, record.ideal_s * (crowding if crowding > 1.0 else 1.0)))
        if record.row >= 0:
            table.remove(record)
        if self.over.wanted:
            tell_of_end(self, record, now)
        if self.pending:
            self.go_on(now)

    def stopped(self, now: float, records: Sequence[Record]) -> None:
        """Jobs that were told to stop are gone."""
        opened = False
        for record in records:  # all of them before anything changes
            if record.state is not STOPPING or record.row < 0:
                raise refusal(record, WAITING)
        for record in records:
            record.state = WAITING
            self.story.append((now, record.job_id, STOPPED, None))
            opened |= self.vacate(record) or record.job_id in self.pending
        if opened:
            self.go_on(now)

    def node_failed(self, now: float, node: str) -> None:
        """A node is gone, and with it all that ran there since the last checkpoints."""
        self.look_again(now)
        self.conditions.down.add(node)
        nodes.fail(self, node, now, f"node {node} failed")

    def node_repaired(self, now: float, node: str) -> None:
        """A node is back, empty."""
        self.conditions.down.remove(node)
        nodes.reopen(self, node, now)

    # -- decisions ----------------------------------------------------------------------------------------

    def decide(self, now: float) -> None:
        """3. Ask the policy for a plan and make it the target."""
        snapshot = self.view
        if self.timers.due_s <= now:
            fire(self, now)
        if now != self._met_at:
            self.meet(now)
        snapshot.now_s, snapshot.met = now, self._met
        if self.lengths.due:
            self.look_again(now)
        changes, wake_s, notes, _ = self.decider(snapshot)
        snapshot.decided_s = now
        if changes:
            self._apply(changes, now)
        if len(self._changed) > KEPT:
            self.table.changed.trim()
            self.story.pack()
        if notes:
            snapshot.said = notes
        if wake_s != self._wake_s or self.said_s != self._wake_s:
            self._wake_s = wake_s if wake_s > now else inf
            self.say_when()

    def look_again(self, now: float) -> None:
        """Revise what is believed of jobs of unknown length, where that is due."""
        self.lengths.revise(now, self._changed)

    def say_when(self) -> None:
        """Say when the policy has to be asked again, when it wants to be or something is due."""
        at = min(self._wake_s, self.timers.due_s)
        if at != self.said_s:
            self.said_s = at
            self.out.append((DECIDE_AT, None, at))

    def _apply(self, changes: Mapping[str, Allocation | None], now: float) -> None:
        """5. Make the plan the target: first everything that is taken, then everything that is given."""
        if len(changes) == 1:  # and most often one job just starts
            ((job_id, alone),) = changes.items()
            record = self.records.get(job_id)
            if record is not None and alone is not None and plain_start(self.view, record, alone):
                self._give(record, alone, now)
                return
        turns = plain_turns(self.view, changes)
        if turns is not None:  # as most plans are
            for record in turns[0]:
                self.untarget(record, now)
                self._retarget(record, None, now)
            for record, allocation in turns[1]:
                self._give(record, allocation, now)
            return
        # 4. Before anything changes; most plans are looked at more quickly above.
        check_plan(self.view, changes)
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
            self.untarget(record, now)
        moved = False
        for record, after in taken:
            self._retarget(record, after, now)
            moved |= after is not None
        for record, allocation in given:
            self._give(record, allocation, now)
        if moved:  # those that only stop make no room yet
            self.go_on(now)

    def _give(self, record: Record, allocation: Allocation, now: float) -> None:
        """Start a job that waits, at once or as soon as there is room."""
        self.waiting.remove(record)
        self._target(record, allocation, now)
        if record.state is WAITING and not (self.leaving and self._blocked(allocation)):
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
                self.stop(record, now, PREEMPTED)
            return
        self._target(record, after, now)
        self.pending[record.job_id] = None
        # With the same seats it goes on, but may have to wait for another job to make room.
        if running and record.occupies is not None and record.occupies.seats != after.seats:
            self.stop(record, now, self.story.step(RUNNING, STOPPING, "its workers change"))

    def untarget(self, record: Record, now: float) -> None:
        """Take a job's allocation out of the target, settling what it attained."""
        self.view.freed += 1
        job_id, given = record.job_id, record.given
        allocation = self.target.pop(job_id)
        self.free.give(self.nodes, allocation)
        if record.special:
            self._special -= 1
            self.free.plain = not self._special
            record.special = False
        if self.pending:
            self.pending.pop(job_id, None)
        spent = now - record.given_since if record.rate else 0.0  # what is planned is not yet had
        record.attained += given * spent
        record.executed += spent
        if given != record.gpus:
            self.table.resized -= 1
        record.given = 0
        self._changed.append(record)
        if self.usage is not None:
            self.usage.change(record.job, now, -given)
        if self.several_types:
            record.see().held(self.nodes.workers_by_type(allocation), spent)
        if self.conditions.closed:
            for share in allocation.shares:
                if share[0] in self.conditions.closed:
                    count_up(self, share[0])

    def take_back(self, record: Record, now: float) -> None:
        """Let a job that was given something wait again."""
        self.untarget(record, now)
        self.waiting.add(record)

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
        if self.usage is not None:
            self.usage.change(record.job, now, given)
        record.given_since = now
        self._changed.append(record)

    # -- bookkeeping --------------------------------------------------------------------------------------

    def meet(self, now: float) -> None:
        """Integrate the number of active jobs over time."""
        self._met += len(self.table.records) * (now - self._met_at)
        self._met_at = now
