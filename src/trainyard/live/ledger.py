"""What is written down of an event: itself, the answer, intents, attempts, the story, jobs that are over."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainyard.core.answers import answer_record
from trainyard.core.events import DecisionDue, Event, JobFailed, JobStopped, JobSubmitted, ProgressReported
from trainyard.core.instructions import Ended, Ignored, Instruction, Start, Stop
from trainyard.core.real.claims import IGNORED
from trainyard.core.story import Change
from trainyard.core.twins import state_of
from trainyard.core.wire import to_record
from trainyard.core.yard import Yard
from trainyard.live.deciding import Decider
from trainyard.live.intents import Intent, intent_of
from trainyard.live.narration import told
from trainyard.live.settings import Settings
from trainyard.live.store.log import Batch, Row
from trainyard.live.store.reading import ACTIVE, pack
from trainyard.live.views import Info, job_view
from trainyard.model.job import Job
from trainyard.model.spoken import spelled
from trainyard.state.lifecycle import TERMINAL, WITH_PROCESSES, State
from trainyard.state.record import Record

NOT_OVER: Row = {"ended_s": None, "code": None, "text": None, "exit_code": None, "exit_signal": None}


@dataclass(slots=True)
class Ledger:
    """Keeps what the next transaction has to write."""

    yard: Yard
    decider: Decider
    settings: Settings
    epoch: int
    seq: int = 0  # of the last event
    infos: dict[str, Info] = field(default_factory=dict)  # of all jobs that the core knows
    batch: Batch = field(default_factory=Batch)
    intents: list[Intent] = field(default_factory=list)  # of the batch
    touched: set[str] = field(default_factory=set)  # jobs that the batch changed
    doubted: set[tuple[str, int]] = field(default_factory=set)  # runs that said what nobody believes
    run_over: Callable[[str, int], None] = lambda job_id, attempt: None

    def take(self) -> tuple[Batch, list[Intent], set[str]]:
        """Hand over what was noted, after it was written; begin anew."""
        taken = self.batch, self.intents, self.touched
        self.batch, self.intents, self.touched = Batch(), [], set()
        return taken

    def find(self, job_id: str | None) -> Record | None:
        """Return a job that the core knows, even if it is over."""
        if job_id is None:
            return None
        return self.yard.find(job_id) or self.yard.over.records.get(job_id)

    def done(self, job_id: str | None) -> float:
        """Return the samples that a job has done, if it says so itself."""
        record = self.find(job_id)
        return record.done_at(self.yard.now_s) if record is not None and record.reported_s >= 0 else 0.0

    # -- notes ----------------------------------------------------------------------

    def note_job(self, job: Job, info: Info, request_key: str | None) -> None:
        """A job is new."""
        self.batch.jobs.append(
            {
                "number": info.number,
                "job_id": job.job_id,
                "request_key": request_key,
                "name": info.name,
                "user": info.user,
                "tenant": job.tenant,
                "submitted_s": info.submitted_s,
                "spec": json.dumps(info.spec),
                "state": ACTIVE,
                "finished_s": None,
                "view": None,
            }
        )

    def note(self, event: Event, answer: Sequence[Instruction], before: float, by: str) -> None:
        """The core was told of an event; `before` are samples that its job had done until then."""
        self.seq += 1
        self._note_event(event, answer, by)
        if isinstance(event, (JobFailed, JobStopped)) and event.job_id in self.infos:
            info = self.infos[event.job_id]
            info.exit_code, info.exit_signal = event.exit_code, event.exit_signal
        self._note_ends(answer)
        # A run that ended and the next start of its job may be the same event: the end comes first.
        started = {each.job_id: each.attempt for each in answer if isinstance(each, Start)}
        lost = max(before - self.done(job_of(event)), 0.0)
        for n, change in enumerate(self.yard.story.take()):
            mine = change.job_id == job_of(event)
            self._note_change(event, change, n, lost if mine else 0.0, by, started.get(change.job_id))
        for n, instruction in enumerate(answer):
            self._note_instruction(instruction, n)
            if isinstance(instruction, Ignored) and isinstance(event, ProgressReported):
                self._note_doubt(event, instruction.why)
        if (job_id := job_of(event)) is not None:
            self.touched.add(job_id)

    def _note_doubt(self, event: ProgressReported, why: str) -> None:
        """What a job says of itself was not believed: its story says so, once for each attempt."""
        record = self.find(event.job_id)
        if record is None or not why.endswith(IGNORED) or (event.job_id, record.attempt) in self.doubted:
            return
        self.doubted.add((event.job_id, record.attempt))
        row: Row = {"seq": self.seq, "n": len(self.batch.story), "time_s": event.time_s, "text": why}
        self.batch.story.append(row | {"job_id": event.job_id, "state": record.state.value})

    def note_snapshot(self, policy: str) -> None:
        """Write down the whole core, so that the log before it need not be replayed."""
        row = {
            "seq": self.seq,
            "time_s": self.yard.now_s,
            "policy": policy,
            "state": pack(state_of(self.yard)),
        }
        self.batch.snapshots.append(row)

    def _note_event(self, event: Event, answer: Sequence[Instruction], by: str) -> None:
        decided = isinstance(event, DecisionDue) and self.decider.last is not None
        self.batch.events.append(
            {
                "seq": self.seq,
                "epoch": self.epoch,
                "time_s": event.time_s,
                "kind": type(event).__name__,
                "job_id": job_of(event),
                "by": by,
                "record": json.dumps(to_record(event)),
                "answer": json.dumps([answer_record(instruction) for instruction in answer]),
                "plan": json.dumps(self.decider.last) if decided else None,
                "took_ms": self.decider.took_ms if decided else None,
            }
        )

    def _note_ends(self, answer: Sequence[Instruction]) -> None:
        for instruction in answer:
            if isinstance(instruction, Ended):
                info = self.infos[instruction.job.job_id]
                info.finished_s = instruction.finish_s
                if instruction.state is State.DONE:
                    info.exit_code, info.exit_signal = 0, None

    def _note_instruction(self, instruction: Instruction, n: int) -> None:
        if isinstance(instruction, Start):
            self._note_start(instruction)
        grace_s = self.grace_s(instruction.job_id) if isinstance(instruction, Stop) else 0.0
        intent = intent_of(self.yard, instruction, self.seq, n, grace_s)
        if intent is not None:
            self.touched.add(intent.job_id)
            self.intents.append(intent)
            row = intent._asdict() | {"record": json.dumps(intent.record), "done_s": None}
            self.batch.intents.append(row)

    def grace_s(self, job_id: str) -> float:
        """Return how long a job may take to stop: as it asks for, or else everybody's, and more with time."""
        asked = self.infos[job_id].spec.get("grace_s") if job_id in self.infos else None
        usual = self.settings.grace_s if asked is None else float(asked)
        record = self.find(job_id)
        trouble = None if record is None else record.trouble
        patience = 1.0 if trouble is None else trouble.patience(self.yard.rules.many_unsaved)
        return max(usual, min(usual * patience, self.settings.most_grace_s))

    def _note_start(self, start: Start) -> None:
        info, now = self.infos[start.job_id], self.yard.now_s
        info.started_s, info.exit_code, info.exit_signal = now, None, None
        nodes = {share.node: list(share[1:]) for share in start.allocation.shares}
        row: Row = {"job_id": start.job_id, "attempt": start.attempt, "started_s": now}
        self.batch.attempts.append(row | NOT_OVER | {"nodes": json.dumps(nodes), "samples_done": None})

    def _note_change(
        self, event: Event, change: Change, n: int, lost: float, by: str, started: int | None
    ) -> None:
        self.touched.add(change.job_id)
        record = self.find(change.job_id)
        self.batch.story.append(
            {
                "seq": self.seq,
                "n": n,
                "time_s": change.time_s,
                "job_id": change.job_id,
                "state": change.after.value,
                "text": spelled(told(event, change, record, lost, by), change.time_s),
            }
        )
        if record is None:
            return
        if change.before in WITH_PROCESSES and change.after not in WITH_PROCESSES:
            self._note_run_over(event, change, record, record.attempt if started is None else started - 1)
        if change.after in TERMINAL or change.before in TERMINAL:
            self._note_over(change, record)

    def _note_run_over(self, event: Event, change: Change, record: Record, attempt: int) -> None:
        info = self.infos[change.job_id]
        code, text = _how(event, change, record)
        self.batch.ended_attempts.append(
            {
                "b_job_id": change.job_id,
                "b_attempt": attempt,
                "ended_s": change.time_s,
                "code": code,
                "text": spelled(text, change.time_s),
                "exit_code": info.exit_code,
                "exit_signal": info.exit_signal,
                "samples_done": record.done_at(change.time_s),
            }
        )
        self.run_over(change.job_id, attempt)

    def _note_over(self, change: Change, record: Record) -> None:
        over = change.after in TERMINAL
        view: dict[str, Any] | None = None
        if over:
            view = job_view(self.yard, record, self.infos[change.job_id], change.time_s)
        self.batch.ended_jobs.append(
            {
                "b_job_id": change.job_id,
                "state": change.after.value if over else ACTIVE,
                "finished_s": change.time_s if over else None,
                "view": json.dumps(view) if over else None,
            }
        )


def _how(event: Event, change: Change, record: Record) -> tuple[str, str]:
    """Return how a run ended: why its job is over, or else what its processes did."""
    trouble = record.trouble
    if trouble is None or change.after is State.DONE:
        return "", ""
    if change.after not in TERMINAL and change.job_id == job_of(event):
        if isinstance(event, JobFailed) and change.before is not State.KILLING:
            return event.kind, event.text
        if isinstance(event, JobStopped) and event.code:
            return event.code, event.text
    return trouble.code, trouble.text


def job_of(event: Event) -> str | None:
    """Return the job that an event is about."""
    if isinstance(event, JobSubmitted):
        return event.job.job_id
    job_id: str | None = getattr(event, "job_id", None)
    return job_id
