"""The controller: the core with a store and a clock. One thread owns it, and it alone writes.

Everything that happens is an event: the core is told, and the event, its answer and the intents that follow
from it are committed in one transaction. Only then anything is done outside, and only then anybody gets an
answer. A controller that is killed at any instant loses nothing that it had promised: what was not committed
did not happen, and what was committed is found again (`recovery.py`).

It does no I/O but that of the store. `outbox` takes the intents; `live/hands.py` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import ceil, floor, inf

from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    Event,
    JobCancelled,
    JobStarted,
    JobStopped,
    JobSubmitted,
    PolicyChanged,
    ProgressReported,
)
from trainyard.core.instructions import DecideAt, Ignored, Instruction, PlanRefused
from trainyard.core.yard import Yard
from trainyard.errors import TrainyardError
from trainyard.live.backends.base import Observation, RunKey
from trainyard.live.clock import Clock
from trainyard.live.deciding import Decider
from trainyard.live.intents import Intent
from trainyard.live.labels import Label, nothing
from trainyard.live.ledger import Ledger, job_of
from trainyard.live.observing import Acted, Observer, Todo
from trainyard.live.published import Published
from trainyard.live.settings import Settings
from trainyard.live.store.log import Store
from trainyard.live.views import Info, job_view, node_views
from trainyard.model.job import Job
from trainyard.model.tolerance import COUNT
from trainyard.state.lifecycle import State

QUIET = (ProgressReported, CheckpointWritten, JobStarted, JobStopped, DecisionDue)  # ask for no decision


class BrokenError(TrainyardError):
    """The core is not as its log says any more: only a new start from the log helps."""


class Controller:
    """The core, its store, and what neither of them knows: all of it belongs to one thread."""

    def __init__(
        self,
        store: Store,
        yard: Yard,
        decider: Decider,
        policy: str,
        clock: Clock,
        settings: Settings,
        outbox: Callable[[Sequence[Intent]], None],
        at: Label = nothing,
    ) -> None:
        self.store, self.yard, self.decider, self.policy = store, yard, decider, policy
        self.clock, self.settings, self.outbox, self.at = clock, settings, outbox, at
        self.ledger = Ledger(yard, decider, settings, store.epoch, run_over=self._run_over)
        self.observer = Observer(yard, settings.report_s)
        self.published = Published(store.epoch)
        self.number = 0  # of the last job
        self.snapshot_seq = -1  # of the last snapshot
        self.decide_at = inf
        self.started: dict[RunKey, float] = {}  # starts that were carried out, and when (monotonic)
        self.killed: dict[RunKey, float] = {}  # the same of kills
        self.forgettable: list[RunKey] = []  # runs whose end is noted
        self.decided_s = max(yard.view.decided_s, 0.0)
        self.asked_s = inf  # since when something is there that the policy should be asked about

    # -- what happens ----------------------------------------------------------------------

    def tell(self, event: Event, by: str = "") -> list[Instruction]:
        """Tell the core, and note what has to be committed for it."""
        if isinstance(event, JobCancelled) and self._is_starting(event.job_id):
            event = replace(event, at_once=True)  # there is nothing yet that could be saved
        try:
            before = self.ledger.done(job_of(event))
            self.decider.last = None
            answer = self.yard.handle(event)
            self.ledger.note(event, answer, before, by)
        except Exception as error:  # half of it may have happened
            what = f"{type(event).__name__} of {job_of(event) or 'no job'}"
            raise BrokenError(f"the core failed at {what}: {type(error).__name__}: {error}") from error
        for instruction in answer:
            if isinstance(instruction, DecideAt):
                self.decide_at = instruction.time_s
            elif isinstance(instruction, PlanRefused):
                self.published.refuse(instruction.why, event.time_s)
        moot = is_moot(answer)
        if not moot and not isinstance(event, QUIET):
            self.asked_s = min(self.asked_s, self.yard.now_s)
        if isinstance(event, PolicyChanged) and not moot:
            self.policy = event.name
        return answer

    def _is_starting(self, job_id: str) -> bool:
        record = self.yard.find(job_id)
        if record is None or record.state is not State.RUNNING:
            return False
        return RunKey(job_id, record.attempt) not in self.started

    def submit(self, job: Job, info: Info, request_key: str | None = None) -> list[Instruction]:
        """Take in a new job, unless the core ignores it; the caller has looked for its request key."""
        self.ledger.infos[job.job_id] = info
        answer = self.tell(JobSubmitted(self.clock.now(), job), info.user)
        if is_moot(answer):
            del self.ledger.infos[job.job_id]
            return answer
        self.number = max(self.number, info.number)
        self.ledger.note_job(job, info, request_key)
        return answer

    def observe(self, seen: Observation, began: float, only: frozenset[RunKey] | None = None) -> Todo:
        """Compare what the core believes with what the backend showed since `began`, and tell the core."""

        def acted(key: RunKey) -> Acted:
            return Acted(self.started.get(key, inf) < began, self.killed.get(key, inf) < began)

        events, todo = self.observer.events(seen, acted, self.clock.now(), only)
        for event in events:
            self.tell(event, "backend")
        if todo.orphans and not self.store.is_ours():  # else they may be somebody else's
            return todo._replace(orphans=[])
        return todo

    def mark_done(self, intents: Iterable[Intent], at: float) -> None:
        """Note that intents were carried out; `at` is monotonic."""
        for intent in intents:
            row = {"b_seq": intent.seq, "b_n": intent.n, "done_s": self.clock.now()}
            self.ledger.batch.done.append(row)
            noted = {"start": self.started, "kill": self.killed}.get(intent.kind)
            if noted is not None and self.observer.is_alive(intent.key):
                noted[intent.key] = at

    def _run_over(self, job_id: str, attempt: int) -> None:
        self.observer.forget(job_id)
        key = RunKey(job_id, attempt)
        self.started.pop(key, None)
        self.killed.pop(key, None)
        self.forgettable.append(key)

    # -- decisions ----------------------------------------------------------------------

    def due_at(self) -> float:
        """Return when the policy has to be asked next; infinity if only an event changes that."""
        if self.yard.paused:
            return inf
        asked, round_s = min(self.asked_s, self.decide_at), self.yard.rules.round_s
        if round_s is None:
            return asked
        due = ceil(asked / round_s - COUNT) * round_s if asked < inf else inf
        if self.yard.target:  # while anything runs, every round decides
            due = min(due, (floor(self.decided_s / round_s + COUNT) + 1) * round_s)
        return due

    def decide(self) -> None:
        """Ask the policy; what follows is committed apart from what led to it."""
        self.asked_s, self.decided_s = inf, self.clock.now()
        self.tell(DecisionDue(self.decided_s), "policy")
        if self.decide_at <= self.yard.now_s:  # the policy failed: the next event asks it again
            self.decide_at = inf
        if self.ledger.seq - self.snapshot_seq >= self.settings.snapshot_events:
            self.take_snapshot()

    def take_snapshot(self) -> None:
        """Write down the whole core with the next commit, unless nothing happened since the last time."""
        if self.ledger.seq == self.snapshot_seq:
            return
        self.snapshot_seq = self.ledger.seq
        self.ledger.note_snapshot(self.policy)

    # -- committing ----------------------------------------------------------------------

    def commit(self) -> None:
        """Write down what happened, show it, and have done what follows; StoreError if that cannot be now."""
        if not self.ledger.batch:
            return
        self.at("before commit")
        self.store.write(self.ledger.batch)
        self.at("after commit")
        _, intents, touched = self.ledger.take()
        self.publish(touched)
        if intents:
            self.outbox(intents)

    def publish(self, touched: Iterable[str]) -> None:
        """Show readers what changed."""
        views, now = {}, self.yard.now_s
        for job_id in touched:
            record, info = self.ledger.find(job_id), self.ledger.infos.get(job_id)
            if record is not None and info is not None:
                views[job_id] = job_view(self.yard, record, info, now)
        self.published.update(views, node_views(self.yard), self.summary())
        self._prune()

    def publish_all(self) -> None:
        """Show readers everything: at the start."""
        self.publish(list(self.ledger.infos))

    def summary(self) -> dict[str, object]:
        """Return what `status` says of the core."""
        return {
            "policy": self.policy,
            "paused": self.yard.paused,
            "events": self.ledger.seq,
            "plans_refused": self.yard.refused,
            "now_s": self.yard.now_s,
        }

    def _prune(self) -> None:
        """Forget jobs that the core has forgotten."""
        infos, over = self.ledger.infos, self.yard.over.records
        if len(infos) <= 2 * (len(self.yard.table.records) + len(self.yard.parked) + self.settings.remember):
            return
        for job_id in [job for job in infos if self.yard.find(job) is None and job not in over]:
            del infos[job_id]
            self.published.forget(job_id)


def is_moot(answer: Sequence[Instruction]) -> bool:
    """Whether the core ignored what it was told."""
    return any(isinstance(instruction, Ignored) for instruction in answer)
