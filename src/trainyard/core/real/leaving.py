"""How processes leave: told to stop or killed, confirmed node by node; and what becomes of their job then."""

from __future__ import annotations

from typing import Literal

from trainyard.core.instructions import KILL
from trainyard.core.progress import roll_back
from trainyard.core.real.ends import judge
from trainyard.core.real.parking import park, unpark
from trainyard.core.real.shunning import shun
from trainyard.core.works import Works
from trainyard.model.spoken import moment, span
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

S = State
Way = Literal["stop", "kill", "gone"]


def wind_up(yard: Works, record: Record, now: float, ending: State, cause: str, way: Way) -> None:
    """End a run; what becomes of its job, `ending`, is settled when its processes are gone.

    A job that may be planned again at once waits where policies see it; any other is parked.
    """
    trouble = record.troubles()
    trouble.ending = ending
    if ending is S.WAITING and trouble.until_s <= now and record.row >= 0:
        if record.job_id in yard.target:
            yard.take_back(record, now)
    else:
        park(yard, record, now)
    if way == "stop":
        if record.state is S.RUNNING:
            yard.stop(record, now, yard.story.step(S.RUNNING, S.STOPPING, cause))
        return
    if record.state is S.RUNNING and way == "kill":
        yard.leave(record)
    roll_back(record, now)
    record.start = -1
    yard.note(record)
    if way == "gone":
        gone(yard, record, now, cause)
    elif record.state is not S.KILLING:
        yard.change(record, S.KILLING, now, cause, record.occupies)
        yard.out.append((KILL, record))


def gone(yard: Works, record: Record, now: float, cause: str = "its processes are gone") -> None:
    """Nothing is left of a run."""
    trouble = record.troubles()
    ending, trouble.ending = trouble.ending, None
    if trouble.code == "time_limit":
        trouble.text = _out_of_time(record)
    if ending is not None and ending not in (S.WAITING, S.HELD):
        yard.finish(now, record, ending, cause if not trouble.text else trouble.text)
        return
    opened = yard.vacate(record)
    yard.note(record)
    yard.change(record, ending or S.WAITING, now, cause)
    if record.state is S.HELD:
        park(yard, record, now)
    else:
        if trouble.until_s > now:
            yard.timers.at(trouble.until_s, record.job_id)
        unpark(yard, record, now)
    if opened or yard.pending:
        yard.go_on(now)


def _out_of_time(record: Record) -> str:
    """Say how long it could run, and what it saved."""
    limit_s, saved_s = (record.job.terms or NO_TERMS).time_limit_s, record.troubles().saved_s
    saved = f"saved at {moment(saved_s)}" if saved_s else "it reported no checkpoint"
    return f"its time limit of {span(limit_s)} is over; {saved}"


def gone_from(yard: Works, record: Record, node: str, now: float) -> None:
    """Nothing is left of a run on one node."""
    trouble, occupied = record.troubles(), record.occupies
    assert occupied is not None
    if trouble.on is None:
        trouble.on = {share.node for share in occupied.shares}
    if node in trouble.on:
        if len(trouble.on) == 1:
            roll_back(record, now)
            gone(yard, record, now)
        else:
            trouble.on.remove(node)
            if yard.seats is not None:
                yard.seats.give_back_on(record.job_id, node)
            if yard.left(node):
                yard.go_on(now)


def failed(yard: Works, record: Record, now: float, kind: str, text: str, way: Way) -> None:
    """A run ends badly: count it, and see what becomes of its job."""
    trouble = record.troubles()
    ending = trouble.ending
    if ending is None or ending is S.WAITING:  # else it was settled before
        if record.job_id in yard.target:
            yard.take_back(record, now)
        trouble.blame(kind, text)
        roll_back(record, now)
        ending = judge(record, kind, now, yard.rules)
        if kind == "start":
            shun(yard, record)
    wind_up(yard, record, now, ending, text or kind, way)


def cancel(yard: Works, record: Record, now: float, text: str, at_once: bool) -> None:
    """A user withdrew a job."""
    record.troubles().blame("user", text)
    if record.occupies is None:
        yard.finish(now, record, S.CANCELLED, text)
    else:
        wind_up(yard, record, now, S.CANCELLED, text, "kill" if at_once else "stop")
