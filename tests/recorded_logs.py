"""What you simulate is what you run: every log that a test records is replayed through the core afterwards.

The policy is asked again, and has to decide what it decided, to the last byte. Controllers of this process
are noted when they open their stores; those of others (`trainyard up`, forked ones) left their stores in the
folder of the test.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

LOG = "trainyard.live.store.log"
CONTROLLER = "trainyard.live.controller"
DECIDERS = {}  # URL of every store that this test opened -> its policies, if they are known
SPOILT = set()  # stores whose log is wrong on purpose


@pytest.fixture(autouse=True)
def every_log_replays(request):
    """Replay every log that a test recorded."""
    _take_note()
    yield
    for path in _left_by(request.node.funcargs.get("tmp_path")):
        DECIDERS.setdefault(f"sqlite:///{path}", None)
    urls, spoilt = dict(DECIDERS), set(SPOILT)
    DECIDERS.clear()
    SPOILT.clear()
    for url, decider in urls.items():
        if url not in spoilt:
            replay(url, decider)


@pytest.fixture
def spoilt():
    """Stores, by their URLs, whose logs a test spoils on purpose."""
    return SPOILT


def replay(url, decider=None) -> int:
    """Replay one log, decisions included; return its length."""
    from sqlalchemy.exc import OperationalError

    from trainyard.live.deciding import Decider
    from trainyard.live.recovery import check_log
    from trainyard.live.store.migrating import version_of
    from trainyard.live.store.opening import connect

    engine = connect(url)
    try:
        # Somebody may still be writing: all is read as of one moment.
        level = {} if url.startswith("sqlite") else {"isolation_level": "REPEATABLE READ"}
        with engine.connect().execution_options(**level) as connection:
            return check_log(connection, decider or Decider()) if version_of(connection) else 0
    except OperationalError as error:
        if "does not exist" in str(error):  # the test took its database away
            return 0
        raise
    finally:
        engine.dispose()


def _left_by(folder) -> list[Path]:
    """All stores in the folder of a test."""
    if folder is None:
        return []
    return [path for path in folder.rglob("*.db") if path.read_bytes()[:15] == b"SQLite format 3"]


def _take_note() -> None:
    """Have stores and controllers say that they are made; once, as soon as anybody knows them."""
    if LOG not in sys.modules or CONTROLLER not in sys.modules:
        return
    from trainyard.live.controller import Controller
    from trainyard.live.deciding import Decider
    from trainyard.live.store.log import Store

    if hasattr(Store, "noted"):
        return
    open_store, make = Store.__init__, Controller.__init__

    def opened(self, engine):
        open_store(self, engine)
        DECIDERS.setdefault(engine.url.render_as_string(hide_password=False), None)

    def made(self, store, yard, decider, *rest, **more):
        make(self, store, yard, decider, *rest, **more)
        DECIDERS[store.engine.url.render_as_string(hide_password=False)] = Decider(decider._find)

    Store.__init__, Controller.__init__, Store.noted = opened, made, True
