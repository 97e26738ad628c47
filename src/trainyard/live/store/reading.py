"""Reading the store: what recovery needs, and what users ask for."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from trainyard.live.store.tables import ATTEMPTS, EVENTS, INTENTS, JOBS, SNAPSHOTS, STORY

MANY = 500  # names in one question
ACTIVE = "active"  # the state of a job that is not over, in the table


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """The core after an event."""

    seq: int
    policy: str
    state: Mapping[str, Any]


def pack(state: Mapping[str, Any]) -> bytes:
    """Return a state as it is stored."""
    return zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1)


def unpack(stored: bytes) -> dict[str, Any]:
    """Return a state that was stored."""
    state: dict[str, Any] = json.loads(zlib.decompress(stored))
    return state


def latest_snapshot(connection: Connection) -> StoredSnapshot | None:
    """Return the core as it was written down last."""
    return _snapshot(connection, descending=True)


def first_snapshot(connection: Connection) -> StoredSnapshot | None:
    """Return the core as it was when the log began."""
    return _snapshot(connection, descending=False)


def _snapshot(connection: Connection, *, descending: bool) -> StoredSnapshot | None:
    order = SNAPSHOTS.c.seq.desc() if descending else SNAPSHOTS.c.seq
    row = connection.execute(select(SNAPSHOTS).order_by(order).limit(1)).mappings().first()
    return None if row is None else StoredSnapshot(row["seq"], row["policy"], unpack(row["state"]))


def events_after(connection: Connection, seq: int) -> Iterator[RowMapping]:
    """Return all events after one, in order."""
    asked = select(EVENTS).where(EVENTS.c.seq > seq).order_by(EVENTS.c.seq)
    yield from connection.execution_options(yield_per=1000).execute(asked).mappings()


def last_seq(connection: Connection) -> int:
    """Return the number of the last event."""
    return connection.execute(select(func.max(EVENTS.c.seq))).scalar() or 0


def asked_since(connection: Connection, quiet: Collection[str]) -> float | None:
    """Return when something happened that no decision followed; `quiet` kinds of events ask for none."""
    decided = select(func.max(EVENTS.c.seq)).where(EVENTS.c.kind == "DecisionDue").scalar_subquery()
    after = EVENTS.c.seq > func.coalesce(decided, 0)
    asked = select(func.min(EVENTS.c.time_s)).where(after, EVENTS.c.kind.not_in(quiet))
    return connection.execute(asked).scalar()


def named_intents(connection: Connection, seq: int) -> dict[int, list[tuple[int, str, str, int]]]:
    """Return the intents of all events after one: number, kind, job and attempt."""
    wanted = (INTENTS.c.seq, INTENTS.c.n, INTENTS.c.kind, INTENTS.c.job_id, INTENTS.c.attempt)
    asked = select(*wanted).where(INTENTS.c.seq > seq).order_by(INTENTS.c.seq, INTENTS.c.n)
    found: dict[int, list[tuple[int, str, str, int]]] = {}
    for of, *rest in connection.execute(asked):
        found.setdefault(of, []).append(tuple(rest))
    return found


def open_intents(connection: Connection) -> list[RowMapping]:
    """Return what has to be done and is not known to be done."""
    asked = select(INTENTS).where(INTENTS.c.done_s.is_(None)).order_by(INTENTS.c.seq, INTENTS.c.n)
    return list(connection.execute(asked).mappings())


def starts_of(connection: Connection, job_ids: list[str]) -> list[RowMapping]:
    """Return how these jobs were started, all their attempts."""
    found: list[RowMapping] = []
    for start in range(0, len(job_ids), MANY):
        some = INTENTS.c.job_id.in_(job_ids[start : start + MANY])
        found += connection.execute(select(INTENTS).where(some, INTENTS.c.kind == "start")).mappings()
    return found


def active_jobs(connection: Connection) -> list[RowMapping]:
    """Return all jobs that are not over."""
    return list(
        connection.execute(select(JOBS).where(JOBS.c.state == ACTIVE).order_by(JOBS.c.number)).mappings()
    )


def last_number(connection: Connection) -> int:
    """Return the number of the job that came last."""
    return connection.execute(select(func.max(JOBS.c.number))).scalar() or 0


def job_row(connection: Connection, job_id: str) -> RowMapping | None:
    """Return one job as it was submitted."""
    return connection.execute(select(JOBS).where(JOBS.c.job_id == job_id)).mappings().first()


def job_rows(connection: Connection, job_ids: list[str]) -> list[RowMapping]:
    """Return some jobs as they were submitted."""
    found: list[RowMapping] = []
    for start in range(0, len(job_ids), MANY):
        some = JOBS.c.job_id.in_(job_ids[start : start + MANY])
        found += connection.execute(select(JOBS).where(some)).mappings()
    return found


def job_of_request(connection: Connection, request_key: str) -> str | None:
    """Return the job that was submitted with this key."""
    return connection.execute(select(JOBS.c.job_id).where(JOBS.c.request_key == request_key)).scalar()


def last_attempts(connection: Connection, job_ids: list[str]) -> dict[str, RowMapping]:
    """Return the latest attempt of each of these jobs that had any."""
    found: dict[str, RowMapping] = {}
    for start in range(0, len(job_ids), MANY):
        some = ATTEMPTS.c.job_id.in_(job_ids[start : start + MANY])
        asked = select(ATTEMPTS).where(some).order_by(ATTEMPTS.c.attempt)
        found |= {row["job_id"]: row for row in connection.execute(asked).mappings()}
    return found


def attempts_of(connection: Connection, job_id: str) -> list[RowMapping]:
    """Return all attempts of a job, in order."""
    asked = select(ATTEMPTS).where(ATTEMPTS.c.job_id == job_id).order_by(ATTEMPTS.c.attempt)
    return list(connection.execute(asked).mappings())


def story_of(connection: Connection, job_id: str) -> list[RowMapping]:
    """Return everything that happened to a job, in order."""
    asked = select(STORY).where(STORY.c.job_id == job_id).order_by(STORY.c.seq, STORY.c.n)
    return list(connection.execute(asked).mappings())


def ended_jobs(connection: Connection, since_s: float = 0.0) -> list[dict[str, Any]]:
    """Return jobs that are over since a time, as users see them, newest first."""
    asked = select(JOBS.c.view).where(JOBS.c.view.is_not(None), JOBS.c.finished_s >= since_s)
    rows = connection.execute(asked.order_by(JOBS.c.number.desc()))
    return [json.loads(view) for (view,) in rows]
