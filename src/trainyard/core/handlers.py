"""Every event, in every state: it is handled, or ignored with a reason. Time never runs back.

The simulator calls the methods of the yard itself, as it knows what it does; whatever comes from outside goes
through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    Event,
    GpuFailed,
    GpuRepaired,
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
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    PolicyChanged,
    ProgressReported,
    ReservationDropped,
    ReservationMade,
)
from trainyard.core.instructions import IGNORED, REFUSED
from trainyard.core.progress import keep, lose, roll_back
from trainyard.core.real import nodes
from trainyard.core.real.changes import changed_job
from trainyard.core.real.due import fire
from trainyard.core.real.ends import ENDS, forgive
from trainyard.core.real.leaving import cancel, failed, gone, gone_from, wind_up
from trainyard.core.real.over import met
from trainyard.core.real.parking import await_others, hold, release
from trainyard.core.works import Works
from trainyard.errors import TrainyardError
from trainyard.model.reserving import settled
from trainyard.state.lifecycle import TERMINAL, State
from trainyard.state.record import Record
from trainyard.state.usage import Usage

S = State


class MootError(Exception):
    """An event changes nothing; its text says why."""


def take_in(yard: Works, event: Event) -> None:
    """Handle one event; what has to be done about it is added to the yard's list."""
    try:
        if not isfinite(event.time_s):
            raise MootError(f"its time is {event.time_s}")
        now = yard.now_s = max(yard.now_s, event.time_s)
        yard.look_again(now)
        if yard.timers.due_s <= now:
            fire(yard, now)
        HANDLERS[type(event)](yard, event, now)
    except MootError as moot:
        yard.out.append((IGNORED, None, event, str(moot)))
    if yard.timers.due_s < inf:
        yard.say_when()


# -- jobs ----------------------------------------------------------------------------------------------------


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
    record = yard.submit(now, job)
    if terms is None:
        return
    yard.timers.arm(record)
    for first, when in terms.after.items():
        if first in over and not met(when, over[first].state):
            state = over[first].state.value
            record.troubles().blame("dependency", f"{first} is {state}")
            yard.finish(now, record, S.CANCELLED, f"job {first} is {state}")
            return
    await_others(yard, record, now)
    if terms.hold:
        hold(yard, record, now)


def _started(yard: Works, event: JobStarted, now: float) -> None:
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.KILLING)
    if yard.seats is None:
        if event.gpus:
            raise MootError("nobody keeps track of GPUs by index here")
    elif event.gpus and not yard.seats.correct(record.job_id, event.gpus):
        raise MootError("these are not its GPUs: others hold them, or they are not as many")
    if record.trouble is not None:
        record.trouble.failed_starts = 0


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
    if record.state is S.STOPPING and event.saved:
        keep(record)
    elif record.state is S.STOPPING:
        lose(record)
        yard.note(record)
    if not event.saved:
        trouble = record.troubles()
        trouble.unsaved += 1
        trouble.blame("not_saved", "it stopped without a checkpoint")
    elif trouble is not None:
        trouble.unsaved = 0
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


def _reporter(yard: Works, event: ProgressReported | CheckpointWritten) -> Record:
    """Return the record of a job that says how far it is; what its last run did may come late."""
    record = _run_of(yard, event, S.RUNNING, S.STOPPING, S.WAITING, S.HELD)
    if not record.attempt:
        raise MootError(f"job {event.job_id} never ran")
    if not 0 <= event.samples_done < inf:
        raise MootError(f"{event.samples_done} samples cannot be done")
    return record


def _progress(yard: Works, event: ProgressReported, now: float) -> None:
    record = _reporter(yard, event)
    if event.time_s < record.reported_s:
        raise MootError(f"job {event.job_id} reported later already")
    yard.take_report(record, event)


def _saved(yard: Works, event: CheckpointWritten, now: float) -> None:
    record = _reporter(yard, event)
    yard.take_checkpoint(record, event)


# -- nodes ---------------------------------------------------------------------------------------------------


def _node(yard: Works, name: str, *, away: bool = False) -> str:
    """Return the name of a node that is known and, unless asked for, has not left."""
    if name not in yard.nodes.index or (name in yard.conditions.away and not away):
        raise MootError(f"there is no node {name}")
    return name


def _joined(yard: Works, event: NodeJoined, now: float) -> None:
    node = event.node
    if nodes.RETIRED in node.node_id:
        raise MootError(f"{nodes.RETIRED} in the name of a node is for nodes that left")
    if node.node_id in yard.nodes.index and node.node_id not in yard.conditions.away:
        raise MootError(f"node {node.node_id} is here already")
    if node.node_id in yard.nodes.index:
        nodes.fenced(yard, node.node_id, now)
    nodes.join(yard, node, now)


def _left(yard: Works, event: NodeLeft, now: float) -> None:
    nodes.leave(yard, _node(yard, event.node), now)


def _drained(yard: Works, event: NodeDrained, now: float) -> None:
    node = _node(yard, event.node)
    if node in yard.conditions.drained:
        raise MootError(f"node {node} is drained already")
    nodes.drain(yard, node, now)


def _undrained(yard: Works, event: NodeUndrained, now: float) -> None:
    node = _node(yard, event.node)
    if node not in yard.conditions.drained:
        raise MootError(f"node {node} is not drained")
    yard.conditions.drained.remove(node)
    nodes.reopen(yard, node, now)


def _node_failed(yard: Works, event: NodeFailed, now: float) -> None:
    node = _node(yard, event.node)
    if node in yard.conditions.down:
        raise MootError(f"node {node} is down already")
    yard.node_failed(now, node)


def _fenced(yard: Works, event: NodeFenced, now: float) -> None:
    node = _node(yard, event.node, away=True)
    if node not in yard.conditions.down | yard.conditions.away:
        raise MootError(f"node {node} is up")
    if node not in yard.leaving:
        raise MootError(f"nothing was left on node {node}")
    nodes.fenced(yard, node, now)


def _repaired(yard: Works, event: NodeRepaired, now: float) -> None:
    node = _node(yard, event.node)
    if node not in yard.conditions.down:
        raise MootError(f"node {node} is up")
    nodes.fenced(yard, node, now)
    yard.node_repaired(now, node)


def _gpu_failed(yard: Works, event: GpuFailed, now: float) -> None:
    node = _node(yard, event.node)
    if not 0 <= event.index < yard.nodes.gpus[yard.nodes.index[node]]:
        raise MootError(f"node {node} has no GPU {event.index}")
    if event.index in yard.conditions.broken.get(node, ()):
        raise MootError(f"GPU {event.index} of node {node} failed already")
    nodes.break_gpu(yard, node, event.index, now)


def _gpu_repaired(yard: Works, event: GpuRepaired, now: float) -> None:
    node = _node(yard, event.node)
    if event.index not in yard.conditions.broken.get(node, ()):
        raise MootError(f"GPU {event.index} of node {node} did not fail")
    nodes.mend_gpu(yard, node, event.index, now)


def _reserved(yard: Works, event: ReservationMade, now: float) -> None:
    wish, conditions = event.reservation, yard.conditions
    if wish.name in conditions.reservations:
        raise MootError(f"there is a reservation {wish.name} already")
    for node in wish.nodes:
        _node(yard, node)
    if not (wish.nodes or wish.gpus > 0) or not wish.from_s < wish.to_s or wish.to_s <= now:
        raise MootError("it reserves nothing: there is no node, or no time")
    there = [node for node in yard.cluster.nodes if node.node_id not in conditions.away]
    try:
        made = settled(wish, there, list(conditions.reservations.values()))
    except TrainyardError as error:
        raise MootError(str(error)) from None
    conditions.reservations[wish.name] = made
    nodes.turn(yard, now)


def _unreserved(yard: Works, event: ReservationDropped, now: float) -> None:
    if event.name not in yard.conditions.reservations:
        raise MootError(f"there is no reservation {event.name}")
    nodes.unreserve(yard, event.name, now)


# -- decisions -----------------------------------------------------------------------------------------------


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


def _decide(yard: Works, event: DecisionDue, now: float) -> None:
    try:
        yard.decide(now)
    except TrainyardError as error:
        yard.refused += 1
        yard.out.append((REFUSED, None, str(error)))


HANDLERS: Mapping[type, Callable[[Works, Any, float], None]] = {
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
    NodeJoined: _joined,
    NodeLeft: _left,
    NodeDrained: _drained,
    NodeUndrained: _undrained,
    NodeFailed: _node_failed,
    NodeFenced: _fenced,
    NodeRepaired: _repaired,
    GpuFailed: _gpu_failed,
    GpuRepaired: _gpu_repaired,
    ReservationMade: _reserved,
    ReservationDropped: _unreserved,
    PolicyChanged: _policy_changed,
    DecisionDue: _decide,
}
