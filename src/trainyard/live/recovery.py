"""A controller comes back: the last snapshot, the log since then, and what was not known to be done.

What the policy decided is read, not decided again: that is quick, and holds even if its code has changed. But
what the core makes of it has to be what it was, event by event; else the log is not ours to go on with.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf

from sqlalchemy import Connection, RowMapping

from trainyard.core.answers import answer_record
from trainyard.core.events import PolicyChanged
from trainyard.core.instructions import Ignored
from trainyard.core.twins import state_of, yard_of
from trainyard.core.wire import from_record
from trainyard.core.yard import Yard
from trainyard.errors import TrainyardError
from trainyard.live.backends.base import RunKey
from trainyard.live.controller import QUIET, Controller
from trainyard.live.deciding import Decider
from trainyard.live.intents import Intent, named
from trainyard.live.store import reading
from trainyard.live.views import Info
from trainyard.state.lifecycle import State


class ReplayError(TrainyardError):
    """The log does not lead where it led when it was written."""


Named = tuple[int, str, str, int]  # an intent: number, kind, job, attempt


def replay(
    yard: Yard, decider: Decider, row: RowMapping, intents: Sequence[Named], *, decide: bool = False
) -> bool:
    """Tell the core of one event of the log; whether it changed anything. `decide`: ask the policy again."""
    event = from_record(json.loads(row["record"]))
    decider.dictated = None if decide or row["plan"] is None else json.loads(row["plan"])
    decider.last = None
    answer = yard.handle(event)
    decider.dictated = None
    said = json.dumps([answer_record(instruction) for instruction in answer])
    if said != row["answer"]:
        raise ReplayError(f"event {row['seq']} of the log leads to {said}; it led to {row['answer']}")
    asked = [(n, *about) for n, each in enumerate(answer) if (about := named(each)) is not None]
    if asked != list(intents):
        raise ReplayError(f"event {row['seq']} of the log asks for {asked}; noted is {list(intents)}")
    if decide and row["plan"] is not None and json.dumps(decider.last) != row["plan"]:
        plan = json.dumps(decider.last)
        raise ReplayError(f"decision {row['seq']} of the log is {plan}; it was {row['plan']}")
    return not any(isinstance(instruction, Ignored) for instruction in answer)


def restore_yard(connection: Connection, decider: Decider) -> tuple[Yard, str, int, int] | None:
    """Return the core, its policy's name, and the last event and snapshot; None if there is no log."""
    found = reading.latest_snapshot(connection)
    if found is None:
        return None
    yard = yard_of(found.state, decider.policy(found.policy).decide, decider.policy)
    policy, seq = found.policy, found.seq
    intents = reading.named_intents(connection, found.seq)
    for row in reading.events_after(connection, found.seq):
        if row["seq"] != seq + 1:
            raise ReplayError(f"event {seq + 1} is missing in the log")
        changed = replay(yard, decider, row, intents.get(row["seq"], ()))
        if changed and row["kind"] == PolicyChanged.__name__:
            policy = json.loads(row["record"])["name"]
        seq = row["seq"]
    yard.story.take()
    return yard, policy, seq, found.seq


def restore_books(connection: Connection, controller: Controller) -> tuple[list[Intent], list[Intent]]:
    """Restore what the core does not know; return what is to be done again, and how all runs were started."""
    yard, ledger = controller.yard, controller.ledger
    controller.number = reading.last_number(connection)
    controller.decide_at = yard.said_s
    asked_s = reading.asked_since(connection, [kind.__name__ for kind in QUIET])
    controller.asked_s = inf if asked_s is None else asked_s
    rows = {row["job_id"]: row for row in reading.active_jobs(connection)}
    over = reading.job_rows(connection, list(yard.over.records))
    rows |= {row["job_id"]: row for row in over}
    attempts = reading.last_attempts(connection, list(rows))
    for job_id, row in rows.items():
        ledger.infos[job_id] = _info(row, attempts.get(job_id))
    opened = [_intent(row) for row in reading.open_intents(connection)]
    starting = {intent.key for intent in opened if intent.kind == "start"}
    alive = {RunKey(record.job_id, record.attempt) for record in controller.observer.records()}
    killing = {intent.key for intent in opened if intent.kind == "kill"}
    controller.started.update((key, -inf) for key in alive - starting)
    controller.killed.update((key, -inf) for key in alive - killing if _is_killed(yard, key))
    starts = [_intent(row) for row in reading.starts_of(connection, sorted({key.job_id for key in alive}))]
    return opened, [intent for intent in starts if intent.key in alive]


def _is_killed(yard: Yard, key: RunKey) -> bool:
    record = yard.find(key.job_id)
    return record is not None and record.state is State.KILLING


def _info(row: RowMapping, attempt: RowMapping | None) -> Info:
    info = Info(row["number"], row["name"], row["user"], json.loads(row["spec"]), row["submitted_s"])
    info.finished_s = row["finished_s"]
    if attempt is not None:
        info.started_s = attempt["started_s"]
        info.exit_code, info.exit_signal = attempt["exit_code"], attempt["exit_signal"]
    return info


def _intent(row: RowMapping) -> Intent:
    return Intent(row["seq"], row["n"], row["kind"], row["job_id"], row["attempt"], json.loads(row["record"]))


def check_log(connection: Connection, decider: Decider) -> int:
    """Replay the whole log, decisions included; return its length. ReplayError if anything differs."""
    first = reading.first_snapshot(connection)
    if first is None:
        return 0
    yard = yard_of(first.state, decider.policy(first.policy).decide, decider.policy)
    seq = first.seq
    intents = reading.named_intents(connection, first.seq)
    for row in reading.events_after(connection, first.seq):
        if row["seq"] != seq + 1:
            raise ReplayError(f"event {seq + 1} is missing in the log")
        replay(yard, decider, row, intents.get(row["seq"], ()), decide=True)
        yard.story.take()
        seq = row["seq"]
    last = reading.latest_snapshot(connection)
    if last is not None and last.seq == seq and json.loads(json.dumps(state_of(yard))) != last.state:
        raise ReplayError(f"the core after event {seq} is not as it was written down")
    return seq
