"""Ctrl-C: one line, exit code 130, nothing half-written, and no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

TRAINYARD = Path(sys.executable).with_name("trainyard")
PATIENCE_S = 60  # only a test that fails waits so long
ENDLESS = ["--cluster", "c.yaml", "--jobs", "j.csv", "--round-s", "0.01"]  # 9 million rounds
COMMANDS = {
    "simulate": [*ENDLESS, "--policy", "srtf"],
    "compare": [*ENDLESS, "--policies", "fifo,srtf,las"],
}


def until(true):
    """Wait for something that happens in another process."""
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def workers(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def group_is_gone(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a command that would take long, in a process group of its own."""
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("nodes:\n  - {count: 1, gpus: 4}\n")
    Path("j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,4,45e3\nb,1,4,45e3\n")
    started = []

    def call(verb):
        words = [TRAINYARD, verb, *COMMANDS[verb], "--out", "out"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(words, text=True, start_new_session=True, **pipes))
        until(Path("out").exists)
        return started[-1]

    yield call
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("whom", ["group", "parent"])  # a terminal tells all of a group, `kill` one process
@pytest.mark.parametrize("verb", COMMANDS)
def test_ctrl_c_ends_a_command(start, verb, whom):
    process = start(verb)
    if verb == "compare" and sys.platform == "linux":
        until(lambda: workers(process.pid))
    (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "trainyard: error: interrupted\n")
    assert not Path("out").exists()  # it was made for nothing
    until(lambda: group_is_gone(process.pid))
