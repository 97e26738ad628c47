"""Before anything runs: the store and the address."""

from __future__ import annotations

import contextlib
import stat

import pytest

from trainyard.errors import TrainyardError
from trainyard.live.daemon import Options
from trainyard.live.store.opening import OwnedError
from trainyard.server import network
from trainyard.server.opening import Start, bind, opened, store_url


def start(data, port=0, store=None):
    return Start(Options(None, None), data, "127.0.0.1", port, store)


def test_the_store_is_a_file_of_the_data_directory_that_others_cannot_read(tmp_path):
    url = store_url(start(tmp_path))
    assert url == f"sqlite:///{tmp_path}/store.db"
    assert stat.S_IMODE((tmp_path / "store.db").stat().st_mode) == 0o600
    with opened(url) as store:
        assert store.epoch == 1
        assert stat.S_IMODE((tmp_path / "store.db-wal").stat().st_mode) == 0o600
    with opened(url) as store:
        assert store.epoch == 2


def test_a_store_that_is_owned_is_said_to_be_before_the_address(tmp_path):
    url = store_url(start(tmp_path))
    with contextlib.closing(network.bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with opened(url):
            with pytest.raises(OwnedError, match="the store is owned by pid"):
                bind(start(tmp_path, port), url)
            with pytest.raises(OwnedError, match="the store is owned by pid"), opened(url):
                pass
        with pytest.raises(network.InUseError, match="Address already in use"):
            bind(start(tmp_path, port), url)


def test_an_address_in_use_is_told_even_if_the_store_does_not_answer(tmp_path):
    given = start(tmp_path, store="postgresql://x@127.0.0.1:1/y")
    url = store_url(given)
    with contextlib.closing(network.bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(network.InUseError):
            bind(start(tmp_path, port), url)
    with pytest.raises(TrainyardError, match="the store cannot be opened: connection failed"), opened(url):
        pass


def test_a_store_of_a_newer_version_is_not_touched(tmp_path):
    url = store_url(start(tmp_path))
    with opened(url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(TrainyardError, match="newer than this program"), opened(url):
        pass
