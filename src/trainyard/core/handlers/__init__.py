"""What does an event change? In every state it is handled, or ignored with a reason. Time never runs back.

The simulator calls the methods of the yard itself, as it knows what it does; whatever comes from outside goes
through here.
"""

from __future__ import annotations

from math import inf, isfinite

from trainyard.core.events import (
    DecisionDue,
    Event,
    JobFinished,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from trainyard.core.handlers import decisions, jobs, nodes
from trainyard.core.handlers.moot import MootError, Table
from trainyard.core.instructions import IGNORED
from trainyard.core.real.due import fire
from trainyard.core.works import Works

HANDLERS: Table = {**jobs.HANDLERS, **nodes.HANDLERS, **decisions.HANDLERS}
# These stop no job: beliefs are left to the next decision, as in the simulator, which knows more by then.
LEFT = (JobSubmitted, JobStarted, JobStopped, JobFinished, DecisionDue)


def take_in(yard: Works, event: Event) -> None:
    """Handle one event; what has to be done about it is added to the yard's list."""
    try:
        if not isfinite(event.time_s):
            raise MootError(f"its time is {event.time_s}")
        now = yard.now_s = max(yard.now_s, event.time_s)
        if type(event) not in LEFT:
            yard.look_again(now)
        if yard.timers.due_s <= now:
            fire(yard, now)
        HANDLERS[type(event)](yard, event, now)
    except MootError as moot:
        yard.out.append((IGNORED, None, event, str(moot)))
    if yard.timers.due_s < inf:
        yard.say_when()
