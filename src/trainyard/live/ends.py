"""How a run ended, from what its members say: the event that tells the core.

The code of a job is that of the worker that failed first; the others were stopped for it. Whether a stop was
ours is known from what the core asked for and what the members say that they were told, never from a clock.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from trainyard.core.events import Event, JobFailed, JobFinished, JobStopped
from trainyard.core.real.ends import CANNOT_START, SAVED, kind_of
from trainyard.live.backends.base import Ended, Exit, RunKey
from trainyard.model.spoken import span


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run, beside how its members ended."""

    key: RunKey
    stopping: bool  # the core asked it to stop
    said_finished: bool
    transient: tuple[int, ...]
    started_s: float


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """A member that ended, and where."""

    node: str
    ended: Ended


First = tuple[str, Exit]  # who ended badly first, and where


def failure_of(
    run: Run, ends: Sequence[MemberEnd], now: float, gone: bool, others: Sequence[First] = ()
) -> JobFailed | None:
    """Return why a run has to end, from the members that ended so far; None if it may go on.

    `others` ended badly on nodes where something still runs.
    """
    lost = next((end for end in ends if end.ended.lost), None)
    if lost is not None:
        return _failed(run, now, "lost_shim", f"nobody watched it on {lost.node} any more", gone)
    refused = next((end for end in ends if _refused(end.ended)), None)
    if refused is not None:
        return _refusal(run, refused, now, gone)
    first = _first(ends, gone)
    if first is None:
        return None
    short = next((end for end in ends if end.ended.out_of_memory), None)
    if short is not None:
        return _failed(run, now, "memory", _short_of_memory(short), gone, first[1])
    node, exit_ = min((first, *others), key=_order)
    kind = kind_of(exit_.code, exit_.signal, transient=run.transient)
    return _failed(run, now, kind, _told(run, node, exit_), gone, exit_)


def end_of(run: Run, ends: Sequence[MemberEnd], now: float) -> Event:
    """Return how a run ended of which nothing is left."""
    told = run.stopping and any(end.ended.stop_asked for end in ends)
    if not told:
        return failure_of(run, ends, now, True) or JobFinished(now, run.key.job_id, attempt=run.key.attempt)
    if any(end.ended.lost or _refused(end.ended) or end.ended.out_of_memory for end in ends):
        failed = failure_of(run, ends, now, True)
        if failed is not None:
            return failed
    first = _first(ends, True)
    late = next((end.ended for end in ends if end.ended.grace_over), None)
    if late is not None:
        return _not_saved(run, now, f"{span(late.grace_s)} were not enough", first)
    if first is None:
        return _stopped(run, ends, now)
    if first[1].launches:
        return JobStopped(now, *run.key, code="stopped", text=_launcher(first[1]), exit_code=first[1].code)
    if first[1].signal == signal.SIGTERM:
        return _not_saved(run, now, "it died of the stop signal without saving", first)
    kind = kind_of(first[1].code, first[1].signal, stop_asked=True, transient=run.transient)
    return _failed(run, now, kind, _told(run, *first), True, first[1])


def _stopped(run: Run, ends: Sequence[MemberEnd], now: float) -> Event:
    """It did as it was told: it saved its work, was finished, or said nothing."""
    workers = [exit_ for end in ends for exit_ in end.ended.exits if exit_.role == "worker"]
    if any(exit_.code == SAVED for exit_ in workers):
        return JobStopped(now, *run.key, code="saved", exit_code=SAVED)
    if not workers:
        return JobStopped(now, *run.key, code="stopped", text="it was stopped before it started")
    if run.said_finished:
        return JobFinished(now, run.key.job_id, attempt=run.key.attempt)
    text = "exited 0 after a stop; started again"
    return JobStopped(now, *run.key, code="stopped", text=text, exit_code=0)


def _refused(ended: Ended) -> bool:
    """Whether a member could not be started, though it was not stopped before that."""
    return not ended.started and not ended.stop_asked


def _first(ends: Sequence[MemberEnd], gone: bool) -> First | None:
    """Who ended badly first; how servers ended after all workers does not matter."""
    bad = [(end.node, end.ended.first) for end in ends if end.ended.first is not None]
    if gone:
        workers = [exit_.at for end in ends for exit_ in end.ended.exits if exit_.role == "worker"]
        bad = [(node, it) for node, it in bad if it.role == "worker" or it.at <= max(workers, default=0.0)]
    return min(bad, key=_order, default=None)


def _order(entry: First) -> tuple[float, int]:
    return entry[1].at, entry[1].rank


# -- in words ------------------------------------------------------------------------------------------------


def _refusal(run: Run, end: MemberEnd, now: float, gone: bool) -> JobFailed:
    ended = end.ended
    hint = f" ({ended.hint})" if ended.hint else ""
    text = f"{ended.why or 'it was not started'} on {end.node}{hint}"
    return _failed(run, now, "cannot_start" if ended.final else "start", text, gone)


def _short_of_memory(end: MemberEnd) -> str:
    used = "used all of its memory"
    if end.ended.memory_gb is not None:
        used = "used {:.3g} of {:.3g} GB".format(*end.ended.memory_gb)
    return f"{used} on {end.node}; ask for more: memory_gb_per_gpu"


def _failed(run: Run, now: float, kind: str, text: str, gone: bool, exit_: Exit | None = None) -> JobFailed:
    code, died_of = (exit_.code, exit_.signal) if exit_ is not None else (None, None)
    return JobFailed(now, run.key.job_id, kind, text, code, run.key.attempt, gone, died_of)


def _not_saved(run: Run, now: float, text: str, first: First | None) -> JobStopped:
    code, died_of = (first[1].code, first[1].signal) if first is not None else (None, None)
    return JobStopped(now, *run.key, False, "not_saved", text, code, died_of)


def _launcher(exit_: Exit) -> str:
    """Say that torchrun never tells what became of the workers that it stopped."""
    how = f"exited {exit_.code}" if exit_.signal is None else f"died of {_signal_name(exit_.signal)}"
    return f"torchrun {how} after a stop; started again"


def _told(run: Run, node: str, exit_: Exit) -> str:
    """Say who ended how, and where to read more."""
    if exit_.code in CANNOT_START:
        hint = f" ({exit_.hint})" if exit_.hint else ""
        return f"{exit_.last_line or f'exit code {exit_.code}'} on {node}{hint}"
    line = f"; last line: {exit_.last_line}" if exit_.last_line else ""
    after = span(max(exit_.at - run.started_s, 0.0))
    if exit_.role == "server":
        return f"server {exit_.rank} on {node} {_how(exit_)} after {after}{line}"
    rank = f" --rank {exit_.rank}" if exit_.rank else ""
    return f"rank {exit_.rank} on {node} {_how(exit_)} after {after}{line}; logs {run.key.job_id}{rank}"


def _how(exit_: Exit) -> str:
    if exit_.signal is None:
        return f"exited with {exit_.code}"
    name = _signal_name(exit_.signal)
    crash = kind_of(None, exit_.signal) == "crash"
    return f"died of {name}" if crash else f"was killed by {name} from outside"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in _KNOWN else f"signal {number}"


_KNOWN = {member.value for member in signal.Signals}
