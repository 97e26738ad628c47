"""Jobs that no policy sees: they are held, it is too early for them, or others have to end first."""

from __future__ import annotations

from trainyard.core.real.over import ended, met
from trainyard.core.works import Works
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import State
from trainyard.state.record import Record


def park(yard: Works, record: Record, now: float) -> None:
    """Take a job away from the policies."""
    if record.row < 0:
        return
    if record.job_id in yard.target:
        yard.untarget(record, now)
    else:
        yard.waiting.remove(record)
    yard.meet(now)
    yard.table.remove(record)
    yard.parked[record.job_id] = record


def unpark(yard: Works, record: Record, now: float) -> None:
    """Let policies see a job again, if nothing keeps it from being planned any more."""
    trouble = record.troubles()
    if record.row >= 0 or record.state is not State.WAITING or trouble.until_s > now:
        return
    if trouble.unmet or trouble.unfit:
        return
    del yard.parked[record.job_id]
    yard.meet(now)
    yard.table.add(record)
    yard.waiting.add(record)


def hold(yard: Works, record: Record, now: float) -> None:
    """Keep a job that has no processes until it is released."""
    park(yard, record, now)
    yard.change(record, State.HELD, now, "held")


def release(yard: Works, record: Record, now: float) -> None:
    """Let a held job wait again."""
    yard.change(record, State.WAITING, now, "released")
    unpark(yard, record, now)


def await_others(yard: Works, record: Record, now: float) -> None:
    """Let a job wait for those that it comes after and that are not over."""
    after = (record.job.terms or NO_TERMS).after
    unmet = {first: when for first, when in after.items() if yard.find(first)}
    if unmet:
        yard.over.wait_for(record, unmet)
        park(yard, record, now)
    elif record.trouble is not None:
        record.trouble.unmet = {}


def tell_of_end(yard: Works, record: Record, now: float) -> None:
    """A job ended: remember it, and tell those that waited for it."""
    over, record.occupies = yard.over, None
    over.remember(record)
    over.ended.append(record)
    if len(over.ended) > 1:
        return  # whoever is at it looks at this one, too: chains may be long
    while over.ended:
        _tell(yard, over.ended[0], now)
        over.ended.popleft()


def _tell(yard: Works, record: Record, now: float) -> None:
    for job_id in yard.over.awaited.pop(record.job_id, ()):
        after = yard.find(job_id)
        if after is not None and after.trouble is not None and record.job_id in after.trouble.unmet:
            when = after.trouble.unmet.pop(record.job_id)
            if met(when, record.state):
                unpark(yard, after, now)
            else:
                after.trouble.blame("dependency", f"{record.job_id} {ended(record.state)}")
                yard.finish(now, after, State.CANCELLED, f"job {record.job_id} {ended(record.state)}")
