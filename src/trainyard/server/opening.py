"""What a controller needs before it begins: its data directory, its store, its address."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.errors import InputError, TrainyardError
from trainyard.server import network, place
from trainyard.server.disks import refuse_shared_disk

if TYPE_CHECKING:
    from trainyard.live.daemon import Options
    from trainyard.live.store.log import Store
    from trainyard.model.profile import Profile


@dataclass(frozen=True, slots=True)
class Start:
    """What `up` was told, read and checked."""

    options: Options
    data: Path
    host: str
    port: int
    store: str | None = None  # as it was given; None: SQLite in the data directory
    models: dict[str, Profile] = field(default_factory=dict)


def store_url(start: Start) -> str:
    """Return the URL of the store; a file of SQLite is made for this user alone."""
    from sqlalchemy import make_url

    from trainyard.live.store.opening import url_of

    given = f"sqlite:///{start.data / place.STORE_FILE}" if start.store is None else start.store
    url = url_of(given)
    if url.startswith("sqlite"):
        _prepare_file(make_url(url).database or "")
    return url


def _prepare_file(database: str) -> None:
    path = Path(database)
    if database in ("", ":memory:"):
        raise InputError("--store: a store in memory would be lost; give sqlite:///FILE")
    if not path.parent.is_dir():
        raise InputError(f"--store: there is no directory {path.parent}; make it first")
    refuse_shared_disk(path.parent)
    try:
        path.touch(mode=place.PRIVATE_FILE)
    except OSError as error:
        raise InputError(f"--store: {path} cannot be written: {error.strerror}") from None


def bind(start: Start, url: str) -> socket.socket:
    """Take the address; if it is in use because the store is, say that."""
    try:
        return network.bind(start.host, start.port)
    except network.InUseError:
        _refuse_owned(url)
        raise


def _refuse_owned(url: str) -> None:
    """Say who has the store, if somebody has."""
    from sqlalchemy.exc import SQLAlchemyError

    from trainyard.live.store.opening import Ownership, connect

    engine = connect(url)
    owner = Ownership(engine)
    try:
        owner.take()
    except SQLAlchemyError:
        return  # nobody says who has it
    finally:
        owner.release()
        engine.dispose()


@contextlib.contextmanager
def opened(url: str) -> Iterator[Store]:
    """Own the store for some time."""
    from sqlalchemy.exc import SQLAlchemyError

    from trainyard.live.store.log import Store
    from trainyard.live.store.opening import connect

    engine = connect(url)
    try:
        store = Store(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise TrainyardError(f"the store cannot be opened: {said[0] if said else '?'}") from None
    except BaseException:
        engine.dispose()
        raise
    try:
        yield store
    finally:
        store.close()
