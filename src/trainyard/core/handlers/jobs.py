"""What happens to jobs and their runs: each event is handled, or moot with a reason."""

from __future__ import annotations

from math import inf
from typing import Any

from trainyard.core.events import (
    CheckpointWritten,
    JobCancelled,
    JobChanged,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobStarted,
    JobStopped,
    JobSubmitted,
    ProgressReported,
)
from trainyard.core.handlers.moot import MootError, Table
from trainyard.core.progress import keep, lose, roll_back
from trainyard.core.real.changes import changed_job
from trainyard.core.real.claims import believed, doubts, note_speed
from trainyard.core.real.ends import ENDS, forgive
from trainyard.core.real.fitting import look_at
from trainyard.core.real.leaving import cancel, failed, gone, gone_from, wind_up
from trainyard.core.real.over import ended, met
from trainyard.core.real.parking import await_others, hold, release
from trainyard.core.works import Works
from trainyard.errors import TrainyardError
from trainyard.state.lifecycle import TERMINAL, State
from trainyard.state.record import Record

S = State


def _active(yard: Works, job_id: str) -> Record:
    record = yard.find(job_id)
    if record is None:
        over = yard.over.records.get(job_id)
        raise MootError(f"job {job_id} is {over.state.value}" if over else f"job {job_id} is not known")
    return record


def _run_of(yard: Works, event: Any, *states: State) -> Record:
    """Return the record that an event about a run is about, if it is about the present one."""
    record = _active(yard, event.job_id)
    if event.attempt and event.attempt != record.attempt:
        raise MootError(
            f"it is about start {event.attempt} of job {event.job_id}, which is at {record.attempt}"
        )
    if record.state not in states:
        raise MootError(f"job {event.job_id} is {record.state.value}")
    return record


def _submitted(yard: Works, event: JobSubmitted, now: float) -> None:
    job = event.job
    if yard.find(job.job_id) is not None or job.job_id in yard.over.records:
        raise MootError(f"there is a job {job.job_id} already")
    if job.gpu_type and job.gpu_type not in yard.nodes.type_index:
        raise MootError(f"no node has GPUs of type {job.gpu_type}")
    terms, over = job.terms, yard.over.records
    for first in terms.after if terms is not None else ():
        if yard.find(first) is None and first not in over:
            raise MootError(f"it comes after job {first}, which is not known")
    try:
        record = yard.submit(now, job)
    except TrainyardError as error:
        raise MootError(str(error)) from None
    if terms is None:
        return
    yard.timers.arm(record)
    for first, when in terms.after.items():
        if first in over and not met(when, over[first].state):
            how = ended(over[first].state)
            record.troubles().blame("dependency", f"{first} {how}")
            yard.finish(now, record, S.CANCELLED, f"job {first} {how}")
            return
    await_others(yard, record, now)
    if terms.hold:
        hold(yard, record, now)
    look_at(yard, record, now)


def _started(yard: Works, event: JobStarted, now: float) -> None:
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.KILLING)
    if yard.seats is None:
        if event.gpus:
            raise MootError("nobody keeps track of GPUs by index here")
    elif event.gpus and not yard.seats.correct(record.job_id, event.gpus):
        raise MootError("these are not its GPUs: others hold them, or they are not as many")
    if record.trouble is not None:
        record.trouble.failed_starts, record.trouble.shuns = 0, ()


def _finished(yard: Works, event: JobFinished, now: float) -> None:
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.KILLING)
    if event.outcome not in TERMINAL:
        raise MootError(f"{event.outcome.value} is no end")
    if record.trouble is not None and record.trouble.ending is S.CANCELLED:
        gone(yard, record, now)
    else:
        if record.trouble is not None:
            record.trouble.ending = None
        yard.finish(now, record, event.outcome)


def _failed(yard: Works, event: JobFailed, now: float) -> None:
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.KILLING)
    if event.kind not in ENDS:
        raise MootError(f"there is no end of kind {event.kind}")
    if record.state is S.KILLING:  # why was settled when it was told to end
        if not event.gone:
            raise MootError(f"job {event.job_id} is being killed already")
        gone(yard, record, now)
        return
    failed(yard, record, now, event.kind, event.text, "gone" if event.gone else "kill")


def _stopped(yard: Works, event: JobStopped, now: float) -> None:
    record = _run_of(yard, event, S.STOPPING, S.KILLING)
    trouble = record.trouble
    settled = trouble is not None and trouble.ending not in (None, S.WAITING)  # what becomes of it, and why
    if record.state is S.STOPPING and event.saved:
        keep(record)
    elif record.state is S.STOPPING:
        lose(record)
        yard.note(record)
    if not event.saved:
        trouble = record.troubles()
        trouble.unsaved += 1
        if trouble.ending not in TERMINAL:  # else why it had to stop is the reason
            why = event.text or "it stopped without a checkpoint"
            trouble.blame("not_saved", f"{why}; back to {trouble.last_saved()}")
    elif trouble is not None:
        trouble.unsaved = 0
    if event.saved and event.code == "saved":
        record.troubles().saved_s = now
    if event.saved and event.code and not settled:
        record.troubles().blame(event.code, event.text)
    if record.state is S.STOPPING and record.row >= 0 and (trouble is None or trouble.ending is None):
        yard.stopped(now, [record])
    else:
        gone(yard, record, now)


def _gone(yard: Works, event: JobGone, now: float) -> None:
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.KILLING)
    occupied = record.occupies
    if event.node and (occupied is None or all(share.node != event.node for share in occupied.shares)):
        raise MootError(f"job {event.job_id} has nothing on node {event.node}")
    if event.node and record.trouble is not None and event.node not in (record.trouble.on or {event.node}):
        raise MootError(f"job {event.job_id} is gone from node {event.node} already")
    alone = not event.node or (occupied is not None and len(occupied.shares) == 1)
    if record.state is S.RUNNING:  # one member lost stops all
        text = f"its processes on {event.node} are gone" if event.node else "its processes are gone"
        failed(yard, record, now, "lost_shim", text, "gone" if alone else "kill")
        if alone:
            return
    if alone:
        roll_back(record, now)
        gone(yard, record, now)
    else:
        gone_from(yard, record, event.node, now)


def _cancelled(yard: Works, event: JobCancelled, now: float) -> None:
    record = _active(yard, event.job_id)
    cancelled = record.trouble is not None and record.trouble.ending is S.CANCELLED
    if cancelled and (record.state is S.KILLING or not event.at_once):
        raise MootError(f"job {event.job_id} is being cancelled already")
    cancel(yard, record, now, event.text, event.at_once)


def _held(yard: Works, event: JobHeld, now: float) -> None:
    record = _active(yard, event.job_id)
    ending = record.trouble.ending if record.trouble is not None else None
    if record.state is S.HELD or ending in (S.HELD, *TERMINAL):
        raise MootError(f"job {event.job_id} is {(ending or record.state).value} already")
    if record.occupies is None:
        hold(yard, record, now)
    else:
        wind_up(yard, record, now, S.HELD, "held", "stop")


def _released(yard: Works, event: JobReleased, now: float) -> None:
    record = _active(yard, event.job_id)
    if record.trouble is not None and record.trouble.ending is S.HELD:
        forgive(record)
        record.trouble.ending = S.WAITING
    elif record.state is S.HELD:
        forgive(record)
        release(yard, record, now)
    else:
        raise MootError(f"job {event.job_id} is not held")


def _changed(yard: Works, event: JobChanged, now: float) -> None:
    record = _active(yard, event.job_id)
    try:
        job = changed_job(record.job, event.changes)
    except TrainyardError as error:
        raise MootError(str(error)) from None
    yard.replace_job(record, job)
    yard.timers.arm(record)
    look_at(yard, record, now)
    target = yard.target.get(record.job_id)
    if target is None or job.least_gpus <= target.gpus <= job.most_gpus:
        return
    if record.state is S.RUNNING:
        wind_up(yard, record, now, S.WAITING, "its size limits changed", "stop")
    else:
        yard.take_back(record, now)


def _retried(yard: Works, event: JobRetried, now: float) -> None:
    record = yard.over.records.get(event.job_id)
    if record is None or record.state not in (S.FAILED, S.CANCELLED):
        raise MootError(f"job {event.job_id} did not fail and was not cancelled, as far as is known")
    del yard.over.records[event.job_id]
    forgive(record)
    record.troubles().again_s = now
    yard.readmit(now, record)
    await_others(yard, record, now)
    yard.timers.arm(record)
    look_at(yard, record, now)


def _reporter(yard: Works, event: ProgressReported | CheckpointWritten) -> Record:
    """Return the record of a job that says how far it is; what its last run did may come late."""
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.WAITING, S.HELD)
    if not record.attempt:
        raise MootError(f"job {event.job_id} never ran")
    if not 0 <= event.samples_done < inf:
        raise MootError(f"{event.samples_done} samples cannot be done")
    if why := doubts(record, max(yard.now_s, event.time_s), event.samples_done):
        raise MootError(why)
    return record


def _progress(yard: Works, event: ProgressReported, now: float) -> None:
    record = _reporter(yard, event)
    if event.time_s < record.reported_s:
        raise MootError(f"job {event.job_id} reported later already")
    note_speed(record, now, event.samples_done)
    yard.take_report(record, believed(record, event))


def _saved(yard: Works, event: CheckpointWritten, now: float) -> None:
    record = _reporter(yard, event)
    before = record.saved
    yard.take_checkpoint(record, event)
    if record.job.terms is not None and record.saved < before:
        record.troubles().saved_s = now


HANDLERS: Table = {
    JobSubmitted: _submitted,
    JobStarted: _started,
    JobFinished: _finished,
    JobFailed: _failed,
    JobStopped: _stopped,
    JobGone: _gone,
    JobCancelled: _cancelled,
    JobHeld: _held,
    JobReleased: _released,
    JobChanged: _changed,
    JobRetried: _retried,
    ProgressReported: _progress,
    CheckpointWritten: _saved,
}
