"""`cancel`, `hold`, `release` and `wait` against a real controller."""

from __future__ import annotations

import json
import signal
import time

import pytest

from controller_cases import PATIENCE_S, UNTIL, Commands, controlled, listens, until


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    yield from controlled(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def run(yard, monkeypatch, capsys):
    return Commands(yard, monkeypatch, capsys)


@pytest.fixture
def submit(yard, run):
    """Submit a job that runs until a file of its name is there."""

    def call(name, *options):
        return run.out("submit", "--name", name, *options, "--", "sh", "-c", UNTIL.format(name)).strip()

    return call


def test_cancel_a_job_that_waits(yard, run, submit):
    blocks = submit("blocks", "--gpus", "4")
    yard.reaches(blocks, "running")
    waits = submit("waits", "--gpus", "4", "--after", blocks)
    assert run.out("cancel", waits) == f"{waits} cancelled (was waiting)\n"
    assert yard.job(waits)["reason_code"] == "user"
    assert run.error("cancel", waits) == (1, f"job {waits} is cancelled")
    assert run.out("cancel", blocks) == f"{blocks} stopping (was running)\n"
    ended = yard.reaches(blocks, "cancelled")
    assert ended["reason_code"] == "user"  # though it did not save
    assert ended["reason"].startswith("cancelled by ")


def test_cancel_at_once(yard, run, submit):
    job = submit("dies")
    yard.reaches(job, "running")
    assert run.json("cancel", "--now", job, "--json")["state"] == "killing"
    assert yard.reaches(job, "cancelled")["reason_code"] == "user"


def test_the_refusal_as_json(run, submit):
    job = submit("twice")
    run.out("cancel", "--now", job)
    until(lambda: run("cancel", job)[0] == 1)
    code, out, _ = run("cancel", job, "--json")
    assert (code, json.loads(out)["error"]["code"]) == (1, "conflict")


def test_hold_and_release(yard, run, submit):
    job = submit("pauses")
    yard.reaches(job, "running")
    assert run.out("hold", job) == f"{job} stopping (was running)\n"
    yard.reaches(job, "held")
    assert run.out("release", job) in (f"{job} waiting (was held)\n", f"{job} running (was held)\n")
    (yard.folder / "pauses").touch()
    assert yard.reaches(job, "done")["attempt"] == 2
    code, wrong = run.error("release", job)
    assert (code, wrong) == (1, f"job {job} is done")


def test_wait_for_jobs_that_are_done_and_that_will_be(yard, run, submit):
    over = run.out("submit", "--", "true").strip()
    yard.reaches(over, "done")
    later = submit("later")
    with yard.popen("wait", over, "later") as waiting:
        yard.reaches(later, "running")
        assert waiting.poll() is None
        (yard.folder / "later").touch()
        assert waiting.communicate(timeout=PATIENCE_S) == ("", "")
    assert waiting.returncode == 0


def test_wait_for_a_job_that_fails(yard, run):
    job = run.out("submit", "--", "sh", "-c", "exit 4").strip()
    code, out, err = run("wait", job)
    assert (code, out) == (1, "")
    assert err.startswith(f"{job} failed: rank 0 on V100-")
    code, out, _ = run("wait", job, "--json")
    assert (code, [each["exit_code"] for each in json.loads(out)]) == (1, [4])


def test_wait_no_longer_than_asked(yard, run, submit):
    job = submit("forever")
    yard.reaches(job, "running")
    began = time.monotonic()
    assert run("wait", job, "--timeout", "0.5")[:2] == (1, "")
    assert run("wait", job, "--timeout", "0") == (1, "", f"{job} running\n")
    assert time.monotonic() - began < PATIENCE_S
    assert run.error("wait", job, "--timeout", "-1") == (2, "--timeout -1: give 0 or more")
    run.out("cancel", "--now", job)


def test_ctrl_c_ends_a_wait(yard, submit):
    job = submit("endless")
    with yard.popen("wait", job) as waiting:
        yard.reaches(job, "running")
        listens(waiting)
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=PATIENCE_S) == ("", "trainyard: error: interrupted\n")
    assert waiting.returncode == 130
    assert yard.job(job)["state"] == "running"
