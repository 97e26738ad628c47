"""How a run ended, from what its members say: the event that tells the core.

The code of a job is that of the worker that failed first; the others were stopped for it. Whether a stop was
ours is known from what the core asked for and what the members say that they were told, never from a clock.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from trainyard.core.events import Event, JobFailed, JobFinished, JobStopped
from trainyard.core.real.ends import SAVED, kind_of
from trainyard.live.backends.base import Ended, Exit, RunKey


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run, beside how its members ended."""

    key: RunKey
    stopping: bool  # the core asked it to stop
    said_finished: bool
    transient: tuple[int, ...]
    grace_s: float
    started_s: float
    memory_gb: float  # that it had on its nodes, the least


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """A member that ended, and where."""

    node: str
    ended: Ended


def failure_of(run: Run, ends: Sequence[MemberEnd], now: float, gone: bool) -> JobFailed | None:
    """Return why a run has to end, from the members that ended so far; None if it may go on."""
    lost = next((end for end in ends if end.ended.lost), None)
    if lost is not None:
        return _failed(run, now, "lost_shim", f"nobody watched it on {lost.node} any more", gone)
    refused = next((end for end in ends if not end.ended.started), None)
    if refused is not None:
        kind = "cannot_start" if refused.ended.final else "start"
        return _failed(run, now, kind, f"{refused.ended.why or 'it was not started'} on {refused.node}", gone)
    short = next((end for end in ends if end.ended.out_of_memory), None)
    first = _first(ends)
    if short is not None and first is not None:
        text = f"used all of its memory ({run.memory_gb:g} GB) on {short.node}; ask for more: --memory-gb"
        return _failed(run, now, "memory", text, gone, first[1])
    if first is None:
        return None
    node, exit_ = first
    kind = kind_of(exit_.code, exit_.signal, transient=run.transient)
    return _failed(run, now, kind, _told(run, node, exit_, now), gone, exit_)


def end_of(run: Run, ends: Sequence[MemberEnd], now: float) -> Event:
    """Return how a run ended of which nothing is left."""
    told = run.stopping and any(end.ended.stop_asked for end in ends)
    if not told:
        return failure_of(run, ends, now, True) or JobFinished(now, run.key.job_id, attempt=run.key.attempt)
    first = _first(ends)
    workers = [exit_ for end in ends for exit_ in end.ended.exits if exit_.role == "worker"]
    if any(end.ended.lost or not end.ended.started or end.ended.out_of_memory for end in ends):
        failed = failure_of(run, ends, now, True)
        if failed is not None:
            return failed
    if any(end.ended.grace_over for end in ends):
        return _not_saved(run, now, f"{run.grace_s:g} s were not enough to save", first)
    if first is None:
        saved = any(exit_.code == SAVED for exit_ in workers)
        if not saved and run.said_finished:
            return JobFinished(now, run.key.job_id, attempt=run.key.attempt)
        code, exit_code = ("saved", SAVED) if saved else ("stopped", 0)
        text = "" if saved else "exited 0 after a stop; started again"
        return JobStopped(now, *run.key, code=code, text=text, exit_code=exit_code)
    if first[1].signal == signal.SIGTERM:
        return _not_saved(run, now, "it died of the stop signal without saving", first)
    kind = kind_of(first[1].code, first[1].signal, stop_asked=True, transient=run.transient)
    return _failed(run, now, kind, _told(run, *first, now), True, first[1])


def _first(ends: Sequence[MemberEnd]) -> tuple[str, Exit] | None:
    """Who ended badly first, and where."""
    bad = [(end.ended.first.at, end.node, end.ended.first) for end in ends if end.ended.first is not None]
    if not bad:
        return None
    _, node, first = min(bad, key=lambda entry: (entry[0], entry[2].rank))
    return node, first


def _failed(run: Run, now: float, kind: str, text: str, gone: bool, exit_: Exit | None = None) -> JobFailed:
    code, died_of = (exit_.code, exit_.signal) if exit_ is not None else (None, None)
    return JobFailed(now, run.key.job_id, kind, text, code, run.key.attempt, gone, died_of)


def _not_saved(run: Run, now: float, text: str, first: tuple[str, Exit] | None) -> JobStopped:
    code, died_of = (first[1].code, first[1].signal) if first is not None else (None, None)
    return JobStopped(now, *run.key, False, "not_saved", text, code, died_of)


def _told(run: Run, node: str, exit_: Exit, now: float) -> str:
    """Say who ended how, and where to read more."""
    who = f"{'server' if exit_.role == 'server' else 'rank'} {exit_.rank} on {node}"
    after = f" after {duration(max(exit_.at - run.started_s, 0.0))}"
    if exit_.signal is not None:
        name = signal.Signals(exit_.signal).name if exit_.signal in _KNOWN else f"signal {exit_.signal}"
        what = (
            f"{who} died of {name}"
            if kind_of(None, exit_.signal) == "crash"
            else f"{who} was killed by {name} from outside"
        )
    else:
        what = f"{who} exited with {exit_.code}"
    line = f"; last line: {exit_.last_line}" if exit_.last_line else ""
    rank = f" --rank {exit_.rank}" if exit_.rank else ""
    return f"{what}{after}{line}; logs {run.key.job_id}{rank}"


_KNOWN = {member.value for member in signal.Signals}


def duration(seconds: float) -> str:
    """Write a time as people do."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
