"""The data directory: server.json, and a token that stays."""

from __future__ import annotations

import os
import stat

import pytest

from conftest import complaint
from trainyard.server import place

ABOUT = place.ServerFile("http://127.0.0.1:1", "gpu1", 7, "secret", "0.1", "ab", 3, 1.5)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_is_the_flag_then_a_variable_then_the_users_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    assert place.data_directory("here", {"TRAINYARD_DATA": "/d"}) == tmp_path / "here"
    assert str(place.data_directory("~/x", {})) == "/home/ann/x"
    assert str(place.data_directory(None, {"TRAINYARD_DATA": "/d"})) == "/d"
    assert str(place.data_directory(None, {"XDG_DATA_HOME": "/x"})) == "/x/trainyard"
    assert (
        str(place.data_directory(None, {"XDG_DATA_HOME": "relative"})) == "/home/ann/.local/share/trainyard"
    )
    assert str(place.data_directory(None, {})) == "/home/ann/.local/share/trainyard"
    assert complaint(place.data_directory, "").startswith("--data: the directory has no name")


def test_a_user_without_a_name_is_a_number(monkeypatch):
    assert place.user_name()
    monkeypatch.setattr("getpass.getuser", lambda: {}["nobody"])
    assert place.user_name() == str(os.getuid())


def test_it_is_made_for_its_user_alone(tmp_path):
    place.prepare(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    assert "this is a file, or below one" in complaint(place.prepare, tmp_path / "file")
    assert "this is a file, or below one" in complaint(place.prepare, tmp_path / "file" / "x")


@pytest.mark.parametrize("others", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_is_refused(tmp_path, others):
    tmp_path.chmod(others)
    assert "others could change what is run from here" in complaint(place.prepare, tmp_path)
    tmp_path.chmod(0o755)
    place.prepare(tmp_path)


def test_a_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    assert "others could change what is run from here" in complaint(place.prepare, tmp_path)


def test_a_directory_that_cannot_be_made():
    assert "no files can be written here" in complaint(place.prepare, place.Path("/proc/x"))


def test_the_token_stays_and_nobody_else_reads_it(tmp_path):
    token = place.keep_token(tmp_path)
    assert len(token) >= 40
    assert mode(tmp_path / "token") == 0o600
    (tmp_path / "token").chmod(0o644)
    assert place.keep_token(tmp_path) == token
    assert mode(tmp_path / "token") == 0o600


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xff"])
def test_a_token_that_is_none_is_made_anew(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    token = place.keep_token(tmp_path)
    assert len(token) >= 40
    assert place.keep_token(tmp_path) == token


def test_the_server_file_is_read_as_it_was_written(tmp_path):
    assert place.read_server_file(tmp_path) is None
    old = os.umask(0)
    try:
        place.write_server_file(tmp_path, ABOUT)
    finally:
        os.umask(old)
    assert mode(tmp_path / "server.json") == 0o600
    assert place.read_server_file(tmp_path) == ABOUT
    assert [file.name for file in tmp_path.iterdir()] == ["server.json"]
    place.remove_server_file(tmp_path, ABOUT.pid + 1)  # a newer controller's
    assert place.read_server_file(tmp_path) == ABOUT
    place.remove_server_file(tmp_path, ABOUT.pid)
    place.remove_server_file(tmp_path, ABOUT.pid)
    assert place.read_server_file(tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 1, "more": 2}'])
def test_a_server_file_that_is_none_is_told_in_one_line(tmp_path, content):
    (tmp_path / "server.json").write_text(content)
    assert "this is no server.json of this version" in complaint(place.read_server_file, tmp_path)
