"""Which controller a command talks to, and what it says if there is none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from trainyard.cli.client.finding import Found, find
from trainyard.errors import ControllerError, InputError, UnreachableError

HERE = socket.gethostname()


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch, tmp_path):
    for name in ("TRAINYARD_URL", "TRAINYARD_TOKEN", "TRAINYARD_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def server(folder, port=7410, host=HERE, **more):
    """Write what a controller writes."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "url": f"http://127.0.0.1:{port}",
        "token": f"t{port}",
        "pid": 1,
        "host": host,
        "version": "0.1.0",
    }
    (folder / "server.json").write_text(json.dumps(told | more))
    return str(folder)


def test_the_order(tmp_path, monkeypatch):
    own = server(tmp_path / "home/.local/share/trainyard", 1)
    assert find(None, None) == Found("http://127.0.0.1:1", "t1", f"{own}/server.json", 1, HERE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    server(tmp_path / "xdg/trainyard", 2)
    assert find(None, None).token == "t2"
    monkeypatch.setenv("TRAINYARD_DATA", server(tmp_path / "data", 3))
    assert find(None, None).token == "t3"
    monkeypatch.setenv("TRAINYARD_URL", "http://gpu1:7410/")
    monkeypatch.setenv("TRAINYARD_TOKEN", "secret")
    assert find(None, None) == Found("http://gpu1:7410", "secret", "TRAINYARD_URL")
    assert find(None, server(tmp_path / "flag", 5)).token == "t5"
    assert find("http://gpu2:1", None) == Found("http://gpu2:1", "secret", "--url")


def said(kind, *flags):
    with pytest.raises(kind) as caught:
        find(*flags)
    return str(caught.value)


def test_two_flags():
    assert said(InputError, "http://a", "d") == "--url and --data both name a controller; give one of them"


@pytest.mark.parametrize("url", ["gpu1:7410", "ftp://gpu1", "http://", ""])
def test_an_address_that_is_none(url):
    wrong = f"--url '{url}': give an address such as http://127.0.0.1:7410"
    assert said(InputError, url, None) == wrong


def test_an_address_without_a_token():
    assert said(InputError, "http://gpu1:7410", None) == (
        "--url needs TRAINYARD_TOKEN, which is not set; server.json in the controller's data directory has it"
    )


def test_nobody_was_ever_started(tmp_path):
    assert said(UnreachableError, None, None) == (
        f"no controller runs with {tmp_path}/home/.local/share/trainyard; start one: trainyard up"
    )
    assert said(UnreachableError, None, str(tmp_path / "x")).startswith(
        f"no controller runs with {tmp_path}/x; start one: trainyard up"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"url": 1, "token": 2, "pid": "x", "host": ""}'])
def test_a_file_that_no_controller_wrote(tmp_path, content):
    (tmp_path / "server.json").write_text(content)
    wrong = f"{tmp_path}/server.json is not what a controller writes"
    assert said(ControllerError, None, str(tmp_path)) == wrong


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "server.json").mkdir()
    assert said(ControllerError, None, str(tmp_path)) == (
        f"{tmp_path}/server.json cannot be read: Is a directory"
    )


def test_a_controller_on_another_machine_that_listens_to_it_alone(tmp_path):
    folder = server(tmp_path, 7410, "login1")
    assert said(ControllerError, None, folder) == (
        "the controller runs on login1 and listens only there; from here: ssh -N -L 7410:127.0.0.1:7410 "
        "login1, then export TRAINYARD_URL=http://127.0.0.1:7410 TRAINYARD_TOKEN=... "
        f"(it is in {folder}/server.json)"
    )


def test_a_controller_on_another_machine_that_all_reach(tmp_path):
    folder = server(tmp_path, 7410, "login1", url="http://login1:7410")
    assert find(None, folder).url == "http://login1:7410"


def test_a_controller_that_is_gone():
    ended = subprocess.Popen(["true"])
    ended.wait()
    found = Found("http://127.0.0.1:7410", "t", "server.json", ended.pid, HERE)
    assert found.silence("Connection refused") == (
        f"no controller answers at http://127.0.0.1:7410 (from server.json of pid {ended.pid} on {HERE}, "
        "which is gone); start one: trainyard up"
    )


@pytest.mark.parametrize("host", [HERE, "gpu1"])
def test_a_controller_that_is_not_known_to_be_gone(host):
    pid = os.getpid()
    found = Found("http://gpu1:7410", "t", "server.json", pid, host)
    assert found.silence("Connection refused") == (
        f"no controller answers at http://gpu1:7410 (from server.json of pid {pid} on {host}, "
        "Connection refused); trainyard status tries again"
    )


def test_an_address_where_nobody_answers():
    assert Found("http://a:1", "t", "TRAINYARD_URL").silence("Connection refused") == (
        "no controller answers at http://a:1 (from TRAINYARD_URL): Connection refused"
    )


def test_a_home_directory_may_be_written_short(tmp_path):
    server(tmp_path / "home/yard", 9)
    assert find(None, "~/yard").token == "t9"
    assert Path(find(None, "~/yard").said_by).is_absolute()


@pytest.mark.parametrize("url", ["http://gpu1:abc", "http://gpu1:99999", "http://[::1", "http://gpu1:0"])
def test_an_address_that_is_none_is_told_in_one_line(monkeypatch, url):
    monkeypatch.setenv("TRAINYARD_TOKEN", "secret")
    assert f"--url '{url}': give an address such as" in said(InputError, url, None)


@pytest.mark.parametrize("token", ["two\nlines", "caf\u00e9"])
def test_a_token_that_is_none_is_told_in_one_line(monkeypatch, token):
    monkeypatch.setenv("TRAINYARD_TOKEN", token)
    assert "TRAINYARD_TOKEN has characters" in said(InputError, "http://gpu1:7410", None)
