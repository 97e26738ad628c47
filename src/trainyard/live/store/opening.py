"""Opening a store: SQLite in a file, or PostgreSQL; one writer at a time, with a number that rises."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from trainyard.errors import InputError, TrainyardError
from trainyard.live.store.migrating import migrate
from trainyard.live.store.tables import META

BUSY_MS = 200  # one attempt waits so long for a lock of SQLite
LOCK_NUMBER = 0x7261696C  # of the advisory lock


class OwnedError(TrainyardError):
    """Another controller has the store."""


def url_of(given: str) -> str:
    """Read `--store`: a URL, env:NAME or file:PATH; a password on a command line would be in `ps`."""
    secret = True
    if given.startswith("env:"):
        url = os.environ.get(given[4:], "")
        if not url:
            raise InputError(f"--store {given}: the variable {given[4:]} is not set")
    elif given.startswith("file:"):
        try:
            url = Path(given[5:]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"--store {given}: {error.strerror}") from None
    else:
        url, secret = given, False
    try:
        parsed = make_url(url)
    except Exception:
        raise InputError(
            "--store: this is no URL; write postgresql://USER@HOST/DATABASE or sqlite:///FILE"
        ) from None
    if parsed.password and not secret:
        raise InputError(
            "--store: a password on the command line is seen by everybody in ps; give env:NAME or file:PATH"
        )
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("postgresql+psycopg", "sqlite"):
        raise InputError(f"--store: {parsed.drivername} is not supported; use postgresql:// or sqlite:///")
    return parsed.render_as_string(hide_password=False)


def connect(url: str) -> Engine:
    """Make an engine whose transactions are what they seem."""
    if url.startswith("sqlite"):
        return _sqlite(url)
    try:
        import psycopg  # noqa: F401 - only to say in time that it is missing
    except ImportError:
        raise InputError("PostgreSQL needs psycopg; install it: pip install 'trainyard[postgres]'") from None
    return create_engine(
        url,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 5, "application_name": "trainyard"},
        pool_size=4,
    )


def _sqlite(url: str) -> Engine:
    arguments = {"timeout": BUSY_MS / 1000, "check_same_thread": False}
    engine = create_engine(url, connect_args=arguments, poolclass=QueuePool, pool_size=4)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we say ourselves when transactions begin
        for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")

    return engine


def value_of(connection: Connection, name: str) -> str | None:
    """Return an entry of the table `meta`."""
    return connection.execute(select(META.c.value).where(META.c.name == name)).scalar()


def set_value(connection: Connection, name: str, value: str) -> None:
    """Write an entry of the table `meta`."""
    if value_of(connection, name) is None:
        connection.execute(META.insert().values(name=name, value=value))
    else:
        connection.execute(META.update().where(META.c.name == name).values(value=value))


class Ownership:
    """The right to write: a lock that goes with the process, and an epoch that fences whoever had it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._file: int | None = None
        self._session: Connection | None = None

    def take(self) -> None:
        """Take the lock, or say who has it."""
        if self.engine.dialect.name == "sqlite":
            self._take_file()
        else:
            self._take_session()

    def _take_file(self) -> None:
        path = f"{self.engine.url.database}.lock"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise OwnedError(self._owner()) from None

    def _take_session(self) -> None:
        session = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            asked = text("SELECT pg_try_advisory_lock(:number)")
            if not session.execute(asked, {"number": LOCK_NUMBER}).scalar():
                raise OwnedError(self._owner())
        except BaseException:
            session.close()
            raise
        self._session = session

    def hold(self) -> None:
        """See that the lock is still ours, and take it again after the connection was lost."""
        if self.engine.dialect.name == "sqlite":
            return
        if self._session is not None:
            try:
                self._session.execute(text("SELECT 1"))
                return
            except SQLAlchemyError:
                self._session.invalidate()
                self._session.close()
                self._session = None
        self._take_session()

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._session is not None:
            self._session.invalidate()  # a pool would keep the connection, and with it the lock
            self._session.close()
            self._session = None

    def _owner(self) -> str:
        try:
            with self.engine.connect() as connection:
                known = json.loads(value_of(connection, "owner") or "{}")
        except Exception:
            known = {}
        if not known:
            return "the store is owned by another controller"
        since = time.strftime("%H:%M", time.localtime(known["since_s"]))
        who = f"pid {known['pid']} on {known['host']} since {since} (epoch {known['epoch']})"
        return f"the store is owned by {who}; trainyard status shows it"


def initialise(engine: Engine) -> tuple[str, int]:
    """Bring the store to this version and begin a new epoch; return the store's id and the epoch."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        migrate(connection)
        store_id = value_of(connection, "store_id")
        if store_id is None:
            store_id = uuid.uuid4().hex
            set_value(connection, "store_id", store_id)
        epoch = int(value_of(connection, "epoch") or 0) + 1
        set_value(connection, "epoch", str(epoch))
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since_s": time.time(), "epoch": epoch}
        set_value(connection, "owner", json.dumps(owner))
    return store_id, epoch
