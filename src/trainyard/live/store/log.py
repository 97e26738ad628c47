"""Writing the store: one batch, one transaction. Only the controller's thread does this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, and_, bindparam, func, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from trainyard.errors import TrainyardError
from trainyard.live.store.opening import OwnedError, Ownership, initialise
from trainyard.live.store.tables import ATTEMPTS, EVENTS, INTENTS, JOBS, META, SNAPSHOTS, STORY

Row = dict[str, Any]


class StoreError(TrainyardError):
    """The store cannot be written now; nothing of the batch is in it, or all of it."""


class FencedError(TrainyardError):
    """Another controller has taken over: this one must not do anything any more."""


@dataclass(slots=True)
class Batch:
    """What is written together, in the order of the tables."""

    events: list[Row] = field(default_factory=list)
    intents: list[Row] = field(default_factory=list)
    jobs: list[Row] = field(default_factory=list)  # new ones
    attempts: list[Row] = field(default_factory=list)  # new ones
    story: list[Row] = field(default_factory=list)
    snapshots: list[Row] = field(default_factory=list)
    ended_jobs: list[Row] = field(default_factory=list)  # by b_job_id
    ended_attempts: list[Row] = field(default_factory=list)  # by b_job_id and b_attempt
    done: list[Row] = field(default_factory=list)  # intents, by b_seq and b_n

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


# What is written of a batch, in this order. Statements are made once: that takes longer than to run them.
WRITES: Mapping[str, Any] = {
    "events": EVENTS.insert(),
    "intents": INTENTS.insert(),
    "jobs": JOBS.insert(),
    "attempts": ATTEMPTS.insert(),
    "story": STORY.insert(),
    "snapshots": SNAPSHOTS.insert(),
    "ended_jobs": JOBS.update()
    .where(JOBS.c.job_id == bindparam("b_job_id"))
    .values(state=bindparam("state"), finished_s=bindparam("finished_s"), view=bindparam("view")),
    "ended_attempts": ATTEMPTS.update()
    .where(and_(ATTEMPTS.c.job_id == bindparam("b_job_id"), ATTEMPTS.c.attempt == bindparam("b_attempt")))
    .values(
        ended_s=bindparam("ended_s"),
        code=bindparam("code"),
        text=bindparam("text"),
        exit_code=bindparam("exit_code"),
        exit_signal=bindparam("exit_signal"),
        samples_done=bindparam("samples_done"),
    ),
    "done": INTENTS.update()
    .where(and_(INTENTS.c.seq == bindparam("b_seq"), INTENTS.c.n == bindparam("b_n")))
    .values(done_s=bindparam("done_s")),
}

_EPOCH = select(META.c.value).where(META.c.name == "epoch")
LAST_EVENT, LAST_SNAPSHOT = select(func.max(EVENTS.c.seq)), select(func.max(SNAPSHOTS.c.seq))
EPOCH = {True: _EPOCH, False: _EPOCH.with_for_update(read=True)}  # by whether one writer locks out all others


class Store:
    """A store that this process owns."""

    def __init__(self, engine: Engine) -> None:
        """Take the store for this process and begin a new epoch."""
        self.engine = engine
        self.ownership = Ownership(engine)
        try:
            self.ownership.take()
            self.store_id, self.epoch = initialise(engine)
        except BaseException as error:
            self.close()
            if isinstance(error, SQLAlchemyError):
                raise StoreError(f"the store cannot be opened: {_reason(error)}") from error
            raise
        self._unsure = False  # whether the last batch may be there although it failed

    def write(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing; a batch that failed may be written again."""
        try:
            self.ownership.hold()
            with self.engine.connect().execution_options(writes=True) as connection, connection.begin():
                self._check_epoch(connection)
                if not self._has(connection, batch):
                    self._insert(connection, batch)
        except OwnedError as error:
            if not self.is_ours():
                raise
            # The server has not noticed yet that our old connection is lost: nobody else has taken over.
            raise StoreError(f"an old connection still holds its lock: {error}") from error
        except IntegrityError as error:
            raise TrainyardError(f"the store contradicts what is to be written: {_reason(error)}") from error
        except SQLAlchemyError as error:
            self._unsure = True
            raise StoreError(_reason(error)) from error
        self._unsure = False

    def is_ours(self) -> bool:
        """Whether no other controller has taken over, for certain; FencedError if one has."""
        try:
            with self.engine.connect() as connection:
                self._check_epoch(connection)
        except SQLAlchemyError:
            return False
        return True

    def _check_epoch(self, connection: Connection) -> None:
        epoch = int(connection.execute(EPOCH[connection.dialect.name == "sqlite"]).scalar() or 0)
        if epoch != self.epoch:
            raise FencedError(f"another controller has taken over (epoch {epoch}, this one has {self.epoch})")

    def _has(self, connection: Connection, batch: Batch) -> bool:
        """Whether a batch was written by a transaction that seemed to fail; else it follows the last one."""
        if not batch.events:  # marks of what is done may be set twice, a snapshot not
            rows = batch.snapshots if self._unsure else []
            return bool(rows) and connection.execute(LAST_SNAPSHOT).scalar() == rows[-1]["seq"]
        last, first = connection.execute(LAST_EVENT).scalar() or 0, batch.events[0]["seq"]
        if last == first - 1:
            return False
        if self._unsure and last == batch.events[-1]["seq"]:
            return True
        raise TrainyardError(f"the store ends with event {last}: {first} cannot follow; start from it anew")

    def _insert(self, connection: Connection, batch: Batch) -> None:
        if batch.snapshots:
            _drop_snapshots(connection)
        for name, statement in WRITES.items():
            if rows := getattr(batch, name):
                connection.execute(statement, rows)

    def close(self) -> None:
        """Let go of the store."""
        self.ownership.release()
        self.engine.dispose()


def _drop_snapshots(connection: Connection) -> None:
    """Keep the first snapshot, with which the log begins, and the last one, which a new one follows."""
    first, last = connection.execute(select(func.min(SNAPSHOTS.c.seq), func.max(SNAPSHOTS.c.seq))).one()
    if first is not None:
        connection.execute(SNAPSHOTS.delete().where(SNAPSHOTS.c.seq > first, SNAPSHOTS.c.seq < last))


def _reason(error: SQLAlchemyError) -> str:
    """Return the first line of what a database says."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return said[0] if said else type(error).__name__
