"""From what a backend shows to what the core is told: ends, confirmed starts and kills, reports.

A look proves what it shows and nothing else. `Unknown` is no evidence, and neither is a run that a look does
not have: only a run whose start is known to be carried out and that is not there any more is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trainyard.core.events import CheckpointWritten, Event, JobFailed, JobGone, JobStarted, ProgressReported
from trainyard.core.real.claims import may_tell_total
from trainyard.core.yard import Yard
from trainyard.live.backends.base import MemberKey, MemberState, Observation, Progress, RunKey, Seen
from trainyard.live.ends import MemberEnd, Run, end_of, failure_of
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import WITH_PROCESSES, State
from trainyard.state.queue import by_seq
from trainyard.state.record import Record

OFF = 0.01  # part of a job's samples: a report that differs by less from what is believed can wait
FASTER = 0.05  # the same of its speed
EXITED, LOST, RUNNING, ABSENT = MemberState.EXITED, MemberState.LOST, MemberState.RUNNING, MemberState.ABSENT


class Acted(NamedTuple):
    """What is known to be carried out before a look began."""

    started: bool
    killed: bool


class Todo(NamedTuple):
    """What a look asks to be done, beside telling the core."""

    restart: list[RunKey]  # started, but nothing is there: start it again
    end_servers: list[RunKey]
    stop: list[RunKey]  # told to stop, and still there
    kill: list[RunKey]  # told to end, and still there
    orphans: list[RunKey]  # the core knows nothing of them, or that they are over


@dataclass(slots=True)
class Heard:
    """What was told to the core of one run."""

    attempt: int
    started: bool = False
    progress_at: float = -1.0  # of the last report that was told
    told_s: float = 0.0
    done: float = -1.0
    saved: float = -1.0


@dataclass(slots=True)
class Observer:
    """Compares what the core believes with what a backend shows."""

    yard: Yard
    report_s: float
    heard: dict[str, Heard] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """All jobs of which the core believes that something runs."""
        for record in (*self.yard.table.records, *self.yard.parked.values()):
            if record.state in WITH_PROCESSES:
                yield record

    def events(
        self,
        seen: Observation,
        acted: Callable[[RunKey], Acted],
        now: float,
        only: frozenset[RunKey] | None = None,
    ) -> tuple[list[Event], Todo]:
        """Return what has to be told and done; `acted` says what was carried out of a run."""
        events: list[Event] = []
        todo = Todo([], [], [], [], [])
        for record in list(self.records()) if only is None else self._some(only):
            key = RunKey(record.job_id, record.attempt)
            assert record.occupies is not None
            nodes = [share.node for share in record.occupies.shares]
            members = {node: seen.members.get(MemberKey(*key, node)) for node in nodes}
            self._look_at(record, key, members, seen.progress.get(key), acted(key), now, events, todo)
        todo.orphans.extend(sorted({key.run for key in seen.members if not self.is_alive(key.run)}))
        return events, todo

    def is_alive(self, key: RunKey) -> bool:
        """Whether the core believes that something of a run is there."""
        return self._alive(key) is not None

    def _some(self, only: frozenset[RunKey]) -> list[Record]:
        """The same of these runs, in the order in which their jobs were submitted."""
        found = [record for key in only if (record := self._alive(key)) is not None]
        return sorted(found, key=by_seq)

    def _alive(self, key: RunKey) -> Record | None:
        """The job of a run, if the core believes that it runs."""
        record = self.yard.find(key.job_id)
        alive = record is not None and record.attempt == key.attempt and record.state in WITH_PROCESSES
        return record if alive else None

    def forget(self, job_id: str) -> None:
        """A job is over."""
        self.heard.pop(job_id, None)

    def _look_at(
        self,
        record: Record,
        key: RunKey,
        members: Mapping[str, Seen | None],
        progress: Progress | None,
        acted: Acted,
        now: float,
        events: list[Event],
        todo: Todo,
    ) -> None:
        """Look at one run."""
        if not acted.started:
            return  # whatever is there or not: it is still being started
        ends = [
            MemberEnd(node, seen.ended)
            for node, seen in members.items()
            if seen is not None and seen.state is EXITED and seen.ended is not None
        ]
        if record.state is State.KILLING:
            # What was started, then ended for certain, and is not there is gone, whoever cleared it away.
            cleared = [node for node, seen in members.items() if seen is None and acted.killed]
            events += self._gone(record, key, [*(end.node for end in ends), *cleared], now)
            if len(ends) + len(cleared) < len(members):
                todo.kill.append(key)
            return
        if all(seen is not None and seen.state is RUNNING for seen in members.values()):
            events += self._confirmed(record, key, now)
        end = self._end(record, self._run(record, key, progress), members, ends, now)
        events += self._reports(record, key, progress, now, at_end=end is not None)
        if end is not None:
            events.append(end)
        elif any(seen is not None and seen.state is ABSENT for seen in members.values()):
            todo.restart.append(key)
        elif record.state is State.STOPPING:
            todo.stop.append(key)
        elif all(
            seen is not None and (seen.state is EXITED or seen.workers_over) for seen in members.values()
        ):
            todo.end_servers.append(key)

    def _end(
        self,
        record: Record,
        run: Run,
        members: Mapping[str, Seen | None],
        ends: list[MemberEnd],
        now: float,
    ) -> Event | None:
        """Return how a run ended, or why it has to end; None if it goes on."""
        if len(ends) == len(members):
            return end_of(run, ends, now)
        if lost := [node for node, seen in members.items() if seen is None or seen.state is LOST]:
            return _lost(run.key, lost[0], now)
        if record.state is not State.RUNNING:
            return None
        firsts = [(node, seen.first) for node, seen in members.items() if seen is not None and seen.first]
        return failure_of(run, ends, now, False, firsts)

    def _gone(self, record: Record, key: RunKey, nodes: list[str], now: float) -> list[Event]:
        """Confirm a kill, node by node."""
        on = record.trouble.on if record.trouble is not None else None
        left = [node for node in nodes if on is None or node in on]
        return [JobGone(now, *key, node) for node in left]

    def _confirmed(self, record: Record, key: RunKey, now: float) -> list[Event]:
        heard = self._heard(key)
        if heard.started:
            return []
        heard.started = True
        return [JobStarted(now, *key)]

    def _heard(self, key: RunKey) -> Heard:
        heard = self.heard.get(key.job_id)
        if heard is None or heard.attempt != key.attempt:
            heard = self.heard[key.job_id] = Heard(key.attempt)
        return heard

    def _run(self, record: Record, key: RunKey, progress: Progress | None) -> Run:
        said = progress is not None and (progress.finished or _all_done(record, progress))
        return Run(
            key,
            record.state is State.STOPPING,
            said,
            (record.job.terms or NO_TERMS).transient_exit_codes,
            record.given_since,
        )

    # -- reports ----------------------------------------------------------------------

    def _reports(
        self, record: Record, key: RunKey, progress: Progress | None, now: float, at_end: bool
    ) -> Iterator[Event]:
        """Tell what a job said, if it changes what is believed, or if it was its last word."""
        heard = self._heard(key)
        if progress is None or progress.samples_done is None:
            return
        if progress.at == heard.progress_at and progress.samples_done == heard.done:
            return
        if at_end or heard.progress_at < 0 or self._news(record, progress, heard, now):
            heard.progress_at, heard.told_s, heard.done = progress.at, now, progress.samples_done
            yield ProgressReported(
                now,
                key.job_id,
                progress.samples_done,
                progress.samples_per_s,
                progress.loss,
                progress.samples_total,
                key.attempt,
            )
        saved = -1.0 if progress.samples_saved is None else min(progress.samples_saved, progress.samples_done)
        if saved > heard.saved:
            heard.saved = saved
            yield CheckpointWritten(now, key.job_id, saved, key.attempt)

    def _news(self, record: Record, said: Progress, heard: Heard, now: float) -> bool:
        """Whether a report differs from what is believed, or nothing was told for long."""
        if now - heard.told_s >= self.report_s:
            return True
        total = max(record.total, 1.0)
        off = abs(record.done_at(now) - (said.samples_done or 0.0)) / total
        rate = said.samples_per_s
        faster = rate is not None and abs(rate - record.rate) > FASTER * max(rate, record.rate)
        return off > OFF or (faster and now - heard.told_s >= self.report_s / 60)


def _lost(key: RunKey, node: str, now: float) -> Event:
    text = f"whoever watched it on {node} is gone"
    return JobFailed(now, key.job_id, "lost_shim", text, attempt=key.attempt, gone=False)


def _all_done(record: Record, progress: Progress) -> bool:
    """Whether a job did all samples that it was to do."""
    total = progress.samples_total if may_tell_total(record) else record.total
    return total is not None and progress.samples_done is not None and progress.samples_done >= total
