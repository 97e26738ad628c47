"""Files of a run when things are not as usual: no answer, two writers, a lock that is taken, no name."""

from __future__ import annotations

import errno
import os
from threading import Thread

import pytest

from trainyard.live.backends.local.layout import read_json, write_json
from trainyard.live.backends.local.look import is_there
from trainyard.live.backends.local.run_file import base_environment
from trainyard.live.backends.local.shim.files import take_lock


def test_a_disk_that_does_not_answer_is_not_an_empty_one(tmp_path, monkeypatch):
    assert not is_there(f"{tmp_path}/none")

    def fail(path):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(OSError, match="Input/output"):
        is_there(f"{tmp_path}/none")


def test_a_lock_that_somebody_has_costs_no_descriptor(tmp_path):
    held = take_lock(str(tmp_path / "lock"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert take_lock(str(tmp_path / "lock")) is None
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(held)


def test_two_threads_that_write_the_same_file_write_it_whole(tmp_path):
    path, troubles = tmp_path / "run.json", []

    def write(content):
        try:
            for _ in range(50):
                write_json(path, content)
                troubles.extend([] if read_json(path)["is"] in "ab" else ["mixed"])
        except (OSError, ValueError, KeyError) as error:
            troubles.append(error)

    threads = [Thread(target=write, args=({"is": each, "more": each * 20_000},)) for each in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_user_without_a_name_has_a_number(monkeypatch):
    assert base_environment()["USER"]
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert base_environment()["USER"] == base_environment()["LOGNAME"] == str(os.getuid())
