"""A job's life in sentences: every change of its state, and how each of its runs ended."""

from __future__ import annotations

from trainyard.core.events import Event, JobCancelled, JobFailed, JobStopped
from trainyard.core.real.ends import ENDS, Then
from trainyard.core.story import Change
from trainyard.model.allocation import Allocation
from trainyard.state.lifecycle import TERMINAL, State
from trainyard.state.record import Record

RAN = frozenset({State.RUNNING, State.STOPPING, State.KILLING})


def told(event: Event, change: Change, record: Record | None, lost: float, by: str) -> str:
    """Say what one change means; `lost` are samples that have to be done again."""
    attempt = 0 if record is None else record.attempt
    if change.before is None:
        return f"submitted by {by}" if by else "submitted"
    if change.after is State.RUNNING and change.allocation is not None:
        return _started(change, attempt, record)
    if change.before in RAN and change.after not in RAN:
        return _ended(event, change, record) + _again(record, change, lost)
    if isinstance(event, JobCancelled):
        return f"{change.after.value}: {event.text}"
    return f"{change.after.value}: {change.cause}" + _again(record, change, lost)


def _started(change: Change, attempt: int, record: Record | None) -> str:
    assert change.allocation is not None
    where = places(change.allocation)
    if change.before is State.RUNNING:
        shares = ", ".join(
            f"{s.cpus:g} CPUs and {s.memory_gb:g} GB on {s.node}" for s in change.allocation.shares
        )
        return f"now with {shares}"
    since = ""
    if record is not None and attempt > 1:
        done = record.done_at(change.time_s)
        since = f", going on from {done:.0f} samples" if done and record.reported_s >= 0 else ""
    return f"attempt {attempt} started, {where}{since}"


def places(allocation: Allocation) -> str:
    """Say how many GPUs where."""
    gpus = allocation.gpus
    servers = f" and {allocation.servers} servers" if allocation.servers else ""
    return f"{gpus} GPU{'s' if gpus != 1 else ''}{servers} on {', '.join(s.node for s in allocation.shares)}"


def _ended(event: Event, change: Change, record: Record | None) -> str:
    """Say how a run ended."""
    if isinstance(event, JobStopped):
        code = "" if event.exit_code is None else f", exit {event.exit_code}"
        text = f": {event.text}" if event.text else ""
        return f"{event.code or 'stopped'}{code}{text} (not counted)"
    if isinstance(event, JobFailed) and record is not None and change.after is not State.CANCELLED:
        counted = "counted" if ENDS[event.kind] is Then.COUNTED else "not counted"
        return f"{event.text or event.kind} ({event.kind}, {counted})"
    if change.after in TERMINAL:
        return f"{change.after.value}: {change.cause}"
    return change.cause


def _again(record: Record | None, change: Change, lost: float) -> str:
    """Say what becomes of the job, and how much it has to do again."""
    if change.after in TERMINAL or record is None:
        return ""
    back = f"; {lost:.0f} samples have to be done again" if round(lost) else ""
    state = "; held until it is released" if change.after is State.HELD else ""
    return back + state
