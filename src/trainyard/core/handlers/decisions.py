"""What happens to the policy and its rules: each event is handled, or moot with a reason."""

from __future__ import annotations

from trainyard.core.events import (
    DecisionDue,
    DecisionsPaused,
    DecisionsResumed,
    PolicyChanged,
    RulesChanged,
)
from trainyard.core.handlers.moot import MootError, Table
from trainyard.core.instructions import REFUSED
from trainyard.core.real import nodes
from trainyard.core.real.changes import changed_rules
from trainyard.core.real.shunning import see_shuns
from trainyard.core.works import Works
from trainyard.errors import TrainyardError
from trainyard.state.usage import Usage


def _policy_changed(yard: Works, event: PolicyChanged, now: float) -> None:
    if yard.policies is None:
        raise MootError("no policy can be found by its name here")
    try:
        policy = yard.policies(event.name)
    except TrainyardError as error:
        raise MootError(str(error)) from None
    yard.decider, yard.view.said = policy.decide, {}  # what the last one said and kept is forgotten
    yard.view.caches.clear()
    half_life_s = policy.order.half_life_s
    if half_life_s is not None and yard.usage is not None:
        yard.usage.forget_by(half_life_s, now)
    elif half_life_s is not None:  # it is counted from now on
        yard.usage = yard.view.usage = Usage(half_life_s)
        for job_id in yard.target:
            yard.usage.change(yard.records[job_id].job, now, yard.records[job_id].given)


def _rules_changed(yard: Works, event: RulesChanged, now: float) -> None:
    try:
        yard.rules = yard.view.rules = changed_rules(yard.rules, event.changes)
    except TrainyardError as error:
        raise MootError(str(error)) from None
    yard.view.caches.clear()


def _paused(yard: Works, event: DecisionsPaused, now: float) -> None:
    if yard.paused and not (event.stop and yard.target):
        raise MootError("decisions are paused already")
    yard.paused = True
    if not event.stop:
        return
    for record in [yard.records[job_id] for job_id in yard.target]:
        nodes.make_way(yard, record, now, "decisions are paused")


def _resumed(yard: Works, event: DecisionsResumed, now: float) -> None:
    if not yard.paused:
        raise MootError("decisions are not paused")
    yard.paused = False


def _decide(yard: Works, event: DecisionDue, now: float) -> None:
    if yard.paused:
        raise MootError("decisions are paused")
    if yard.view.shuns is not None:
        see_shuns(yard)  # some may have started meanwhile, or are over
    try:
        yard.decide(now)
    except TrainyardError as error:
        yard.refused += 1
        yard.out.append((REFUSED, None, str(error)))


HANDLERS: Table = {
    PolicyChanged: _policy_changed,
    RulesChanged: _rules_changed,
    DecisionsPaused: _paused,
    DecisionsResumed: _resumed,
    DecisionDue: _decide,
}
