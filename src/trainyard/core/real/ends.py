"""How a run can end: what is counted, what is tried again, and what is the end of the job.

The kinds are the reasons that users read (`reason_code`). Ends that take one of a job's retries and ends that
do not have counters of their own: a job is not held only because others were preferred to it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

from trainyard.model.rules import Rules
from trainyard.model.spoken import span
from trainyard.model.terms import NO_TERMS, Terms
from trainyard.state.lifecycle import State
from trainyard.state.record import Record


class Then(Enum):
    """What follows an end."""

    COUNTED = "counted"  # it takes one of the retries; without any left the job has failed
    AGAIN = "again"  # it does not
    START = "start"  # it never ran: a few tries, then the job has failed
    FINAL = "final"  # trying again would not help


ENDS: Final[dict[str, Then]] = {
    "exit": Then.COUNTED,
    "crash": Then.COUNTED,
    "memory": Then.COUNTED,
    "transient": Then.AGAIN,
    "killed": Then.AGAIN,
    "saved_itself": Then.AGAIN,
    "node_lost": Then.AGAIN,
    "evicted": Then.AGAIN,
    "lost_shim": Then.AGAIN,
    "start": Then.START,
    "cannot_start": Then.FINAL,
    "time_limit": Then.FINAL,
    "max_wait": Then.FINAL,
}
SAVED = 75  # exit code of a job that saved its work and wants to be started again
CANNOT_START = (126, 127)
CRASHES = frozenset({4, 6, 7, 8, 11, 31})  # SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS


def kind_of(
    exit_code: int | None,
    signal: int | None,
    *,
    stop_asked: bool = False,
    said_finished: bool = False,
    out_of_memory: bool = False,
    transient: Collection[int] = (),
) -> str:
    """Return how a run ended that left this exit code or died of this signal.

    Beside the keys of ENDS there are `done`, and `saved` and `stopped` for runs that were told to stop.
    """
    if out_of_memory:
        return "memory"
    if signal is not None:
        return "crash" if signal in CRASHES else "killed"
    if exit_code == 0:
        return "done" if said_finished or not stop_asked else "stopped"
    if exit_code == SAVED:
        return "saved" if stop_asked else "saved_itself"
    if exit_code in CANNOT_START:
        return "cannot_start"
    return "transient" if exit_code in transient else "exit"


def judge(record: Record, kind: str, now: float, rules: Rules) -> State:
    """Count a bad end; return what becomes of the job. If it is to wait, `until_s` may say for how long.

    A job without terms comes from a trace: it fails when its trace says so, and otherwise always goes on.
    """
    trouble, then = record.troubles(), ENDS[kind]
    terms: Terms = record.job.terms or NO_TERMS
    if then is Then.FINAL:
        return State.FAILED
    if then is Then.COUNTED:
        trouble.counted += 1
        if trouble.counted > terms.retries:
            return State.FAILED
    elif then is Then.START:
        _note_try(record, now)
        if trouble.failed_starts >= rules.most_starts:
            return State.FAILED
    elif record.job.terms is None:
        return State.WAITING
    elif _idles(record, now) >= rules.most_idle:
        trouble.blame(
            "no_progress", f"{trouble.idle} restarts, none got past {trouble.last_saved()}; last: {kind}"
        )
        return State.HELD
    if then is not Then.AGAIN:
        count = trouble.counted + trouble.failed_starts - 1
        trouble.until_s = now + min(rules.back_off_s * 2.0 ** min(count, 10), rules.most_back_off_s)
    return State.WAITING


def _note_try(record: Record, now: float) -> None:
    """Count a failed start; say how often and where it was tried."""
    trouble, held = record.troubles(), record.occupies
    if not trouble.failed_starts:
        trouble.tried_s, trouble.tried = now, []
    trouble.failed_starts += 1
    trouble.tried += [s.node for s in held.shares if s.node not in trouble.tried] if held is not None else []
    nodes = f"{len(trouble.tried)} node{'s' if len(trouble.tried) != 1 else ''}"
    if trouble.failed_starts > 1:
        trouble.text += f" ({trouble.failed_starts} tries on {nodes} in {span(now - trouble.tried_s)})"


def _idles(record: Record, now: float) -> int:
    """Count a restart that nobody asked for; return how many there were since the last progress."""
    trouble = record.troubles()
    done = record.done_at(now)  # what is left may only be believed
    if done > trouble.reached:
        trouble.reached, trouble.idle = done, 0
    trouble.idle += 1
    return trouble.idle


def forgive(record: Record) -> None:
    """A user says that the job shall have another chance: all counters begin anew."""
    trouble = record.troubles()
    trouble.counted = trouble.idle = trouble.failed_starts = trouble.unsaved = 0
    trouble.reached, trouble.until_s, trouble.shuns = -1.0, 0.0, ()
    trouble.blame("", "")
