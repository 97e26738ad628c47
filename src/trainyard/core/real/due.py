"""Doing what has become due: time limits, longest waits, back-offs, reservations."""

from __future__ import annotations

from trainyard.core.real.leaving import wind_up
from trainyard.core.real.nodes import turn
from trainyard.core.real.parking import unpark
from trainyard.core.real.timers import limit_at, waits_until
from trainyard.core.works import Works
from trainyard.model.spoken import span
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import State
from trainyard.state.record import Record


def fire(yard: Works, now: float) -> None:
    """Do whatever is due."""
    timers, turns = yard.timers, False
    while timers.due_s <= now:
        job_id = timers.pop()
        record = yard.find(job_id)
        if record is not None:
            _look(yard, record, now)
        turns |= not job_id
    if turns:  # once, however often somebody asked for it
        turn(yard, now)


def _look(yard: Works, record: Record, now: float) -> None:
    """Is the time of this job up, or its back-off over?"""
    terms = record.job.terms or NO_TERMS
    ending = record.trouble is not None and record.trouble.ending is not None
    if record.state is State.RUNNING and now < limit_at(record):
        yard.timers.limit(record)  # what is added up in another way may be due a little later
    elif record.state is State.RUNNING:
        record.troubles().blame("time_limit", f"its time limit of {span(terms.time_limit_s)} is over")
        wind_up(yard, record, now, State.FAILED, "its time limit is reached", "stop")
    elif record.first_start_s is None and now >= waits_until(record) and not ending:
        record.troubles().blame("max_wait", f"not started in {span(terms.max_wait_s)}")
        yard.finish(now, record, State.FAILED, f"not started in {span(terms.max_wait_s)}")
    else:
        unpark(yard, record, now)
