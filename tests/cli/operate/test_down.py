"""`trainyard down`: what it says, and that nothing is there when it returns."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess

import pytest

from server_cases import command, until, up
from trainyard.cli.operate.down import SILENT, _end, said
from trainyard.errors import UnreachableError

SAVES = "trap 'exit 75' TERM; echo ready; while :; do sleep 0.02; done"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({}, "the controller is down; no job ran"),
        ({"go_on": 0, "saved": 0, "not_saved": 0, "over": 0}, "the controller is down; no job ran"),
        ({"go_on": 1}, "1 job goes on; `trainyard up` finds it again"),
        ({"go_on": 2}, "2 jobs go on; `trainyard up` finds them again"),
        ({"saved": 1}, "1 job saved and waits"),
        ({"saved": 2}, "2 jobs saved and wait"),
        (
            {"saved": 1, "not_saved": 1, "over": 2},
            "1 job saved and waits; 1 job stopped without saving: the last checkpoint counts; 2 jobs ended",
        ),
    ],
)
def test_what_it_says(words, text):
    assert said(words) == text


def test_it_returns_when_the_controller_is_gone(tmp_path):
    with up(tmp_path) as started:
        job = started.api.submit(SAVES)["job_id"]
        until(lambda: started.api.get(f"/jobs/{job}/logs").text == "ready\n")
        done = command("down", "--data", str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "1 job goes on; `trainyard up` finds it again\n"
        assert started.process.wait(1) == 0
        assert not (tmp_path / "server.json").exists()
    with up(tmp_path) as again:
        assert again.api.job(job)["attempt"] == 1
        done = command("down", "--checkpoint", "--json", "--data", str(tmp_path))
        assert json.loads(done.stdout) == {"go_on": 0, "saved": 1, "not_saved": 0, "over": 0}
        assert done.stderr == "1 job may save now; this waits for them\n"
        assert again.process.wait(1) == 0
    with up(tmp_path) as third:
        assert third.api.wait(job, "running")["attempt"] == 2


def test_where_none_runs_there_is_nothing_to_end(tmp_path):
    done = command("down", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"trainyard: error: no controller runs with {tmp_path}; start one: trainyard up\n"


def test_a_controller_that_was_killed_is_told_as_gone(tmp_path):
    with up(tmp_path) as started:
        started.end(9)
    done = command("down", "--data", str(tmp_path))
    assert done.returncode == 1
    assert "which is gone" in done.stderr


class Dying:
    """A controller that dies when it is told to go, before it says what became of its jobs."""

    def __init__(self, process):
        self._process = process

    def get(self, path):
        return {"host": socket.gethostname(), "pid": self._process.pid}

    def post(self, path, body):
        return {"running": 1}

    @contextlib.contextmanager
    def events(self, topics):
        self._process.kill()
        self._process.wait()
        raise UnreachableError("it ended the stream")
        yield


def test_what_became_of_jobs_is_not_made_up():
    process = subprocess.Popen(["sleep", "600"])
    assert _end(Dying(process), checkpoint=False) is None
    assert said({}) not in SILENT
