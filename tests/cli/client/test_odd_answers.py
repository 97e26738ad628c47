"""What a command makes of odd answers: other versions, wrong tokens, strangers, broken connections, notes."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from conftest import command
from controller_cases import Controlled, until
from trainyard import __version__

OURS = f"Trainyard-Version: {__version__}"
NO_JOBS = '{"jobs": [], "total": 0, "next": null}'


class Stranger:
    """Answers every request with the same bytes, and closes."""

    def __init__(self, answer):
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            client, _ = self._listener.accept()
            with client:
                asked = client.recv(1 << 16)
                if not asked:
                    return
                self.asked.append(asked.decode())
                client.sendall(self._answer)

    def close(self):
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()


@pytest.fixture
def answered(monkeypatch, capsys):
    """Run a command against somebody who always gives this answer."""
    made = []

    def call(status, *headers, body="", words=("ps",)):
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
        made.append(Stranger(f"{head}\r\n\r\n{body}".encode()))
        monkeypatch.setenv("TRAINYARD_URL", made[-1].url)
        monkeypatch.setenv("TRAINYARD_TOKEN", "t0ken")
        code, out, err = command(monkeypatch, capsys, *words)
        return code, out, err.replace(made[-1].url, "URL").removeprefix("trainyard: error: ").rstrip("\n")

    call.made = made
    yield call
    for each in made:
        each.close()


def test_the_token_goes_along_and_the_answer_is_shown(answered):
    code, out, err = answered("200 OK", OURS, body=NO_JOBS, words=("ps", "--json"))
    assert (code, json.loads(out), err) == (0, [], "")
    (asked,) = answered.made[0].asked
    assert asked.startswith("GET /api/v1/jobs?all=0 HTTP/1.1\r\n")
    assert "Authorization: Bearer t0ken\r\n" in asked


def test_a_controller_that_is_too_old(answered):
    code, out, err = answered("200 OK", "Trainyard-Version: 7.3.1", body=NO_JOBS)
    own = ".".join(__version__.split(".")[:2])
    assert (code, out, err) == (1, "", f"controller 7.3, this command {own}: install trainyard==7.3.*")


def test_somebody_else_answers(answered):
    code, out, err = answered("404 Not Found", "Server: nginx", body="<html>")
    wrong = "who answers is no controller of trainyard: its answer has no version"
    assert (code, out, err) == (1, "", wrong)


def test_an_error_that_nobody_can_read(answered):
    code, _, err = answered("502 Bad Gateway", OURS, body="<html>")
    assert (code, err) == (1, "URL answers 502, not as a controller does")


def test_an_error_of_another_version_says_so(answered):
    major, minor, *_ = __version__.split(".")
    theirs = f"{major}.{int(minor) + 1}.9"
    body = json.dumps({"error": {"code": "not_found", "message": "knows no /x", "field": None}})
    code, _, err = answered("404 Not Found", f"Trainyard-Version: {theirs}", body=body)
    assert (code, err) == (2, f"knows no /x (controller {theirs}, this command {__version__})")


@pytest.mark.parametrize(
    ("status", "exit_code"), [(400, 2), (404, 2), (409, 1), (413, 2), (422, 2), (500, 1), (503, 1)]
)
def test_what_a_controller_says_is_said(answered, status, exit_code):
    body = json.dumps({"error": {"code": "some_code", "message": "this is wrong", "field": "f"}})
    code, out, err = answered(f"{status} X", OURS, body=body, words=("ps", "--json"))
    assert (code, err) == (exit_code, "this is wrong")
    told = json.loads(out)["error"]
    field = "f" if exit_code == 2 else None
    assert told == {
        "code": "unavailable" if status == 503 else "some_code",
        "message": "this is wrong",
        "field": field,
    }


def test_a_note_is_printed_once_on_stderr(answered):
    note = "local has not answered for 40 s; states below are from 12:03:10"
    code, out, err = answered("200 OK", OURS, f"Trainyard-Note: {note}", body=NO_JOBS)
    assert (code, err) == (0, note)
    assert out.split()[0] == "JOB"


def test_a_connection_that_ends_without_an_answer(answered, monkeypatch, capsys):
    answered("200 OK", OURS, body=NO_JOBS)
    answered.made[0]._answer = b""
    code, out, err = command(monkeypatch, capsys, "ps")
    assert (code, out) == (1, "")
    assert "Remote end closed connection without response" in err
    assert len(answered.made[0].asked) == 3  # reading is tried again


def test_nobody_listens(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("TRAINYARD_TOKEN", "t")
    url = f"http://127.0.0.1:{port}"
    assert command(monkeypatch, capsys, "status", "--url", url) == (
        1,
        "",
        f"trainyard: error: no controller answers at {url} (from --url): Connection refused\n",
    )


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    made = Controlled(tmp_path_factory.mktemp("yard"))
    yield made
    made.close()


def test_a_wrong_token(yard, monkeypatch, capsys):
    about = json.loads((yard.data / "server.json").read_text())
    monkeypatch.setenv("TRAINYARD_TOKEN", "wrong")
    code, out, err = command(monkeypatch, capsys, "ps", "--url", about["url"])
    assert (code, out) == (1, "")
    assert err == (
        f"trainyard: error: the controller at {about['url']} does not take the token of TRAINYARD_TOKEN; "
        "server.json in its data directory has the right one\n"
    )
    monkeypatch.setenv("TRAINYARD_TOKEN", about["token"])
    assert command(monkeypatch, capsys, "ps", "--url", about["url"])[0] == 0


def test_trouble_with_the_store_is_noted(yard):
    """While somebody else writes to the store, nothing can be submitted, and readers are told."""
    import sqlite3

    other = sqlite3.connect(yard.data / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = yard.run("submit", "--", "true")
    listed = yard.run("ps")
    other.execute("ROLLBACK")
    other.close()
    assert refused.returncode == 1
    assert "the store cannot be written: " in refused.stderr
    assert listed.returncode == 0
    assert listed.stderr.startswith("the store cannot be written for ")
    until(lambda: yard.run("ps").stderr == "", "the end of the trouble")
    assert yard.run("submit", "--", "true").returncode == 0


def test_a_controller_that_was_killed(yard):
    pid = yard.process.pid
    yard.kill()
    done = yard.run("ps", "--json")
    yard.start()
    assert done.returncode == 1
    wrong = json.loads(done.stdout)["error"]["message"]
    assert done.stderr == f"trainyard: error: {wrong}\n"
    assert f"(from server.json of pid {pid} on {socket.gethostname()}, which is gone)" in wrong
    assert wrong.endswith("; start one: trainyard up")
