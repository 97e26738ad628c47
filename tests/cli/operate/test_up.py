"""`trainyard up` as a process: what it says, what it refuses, what it finds again, how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys

import pytest

import postgres_cases
from conftest import command as in_process
from server_cases import command, until, up

QUICK = "grace_s: 5\nkill_s: 1\nobserve_s: 0.5\nagain_s: 0.5\nback_off_s: 0.05\n"
NODES = "nodes:\n- {count: 2, gpus: 2, gpu_type: V100, cpus: 4, memory_gb: 8}\n"
SAVES = """
import os, signal, sys, time
def save(*_):
    open(os.environ["TRAINYARD_CHECKPOINT_DIR"] + "/saved", "w").close()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
"""


@pytest.fixture
def quick(tmp_path):
    """Options that make an end quick."""
    (tmp_path / "settings.yaml").write_text(QUICK)
    (tmp_path / "cluster.yaml").write_text(NODES)
    return ("--settings", str(tmp_path / "settings.yaml"), "--cluster", str(tmp_path / "cluster.yaml"))


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run commands in this process: those that do not start anything."""
    return lambda *words: in_process(monkeypatch, capsys, *words)


def refused(code, *arguments, **more):
    """Run `up` that does not start; return its one line."""
    done = command("up", *arguments, **more)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("trainyard: error: ")] == lines[-1:]
    return lines[-1].removeprefix("trainyard: error: ")


def test_it_says_what_it_found_and_where_it_is(tmp_path):
    data = tmp_path / "data"
    with up(data) as started:
        assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+\n", started.ready)
        assert started.ready.split()[1] == started.file["url"]
        assert started.file["pid"] == started.process.pid
        assert set(started.file) == {
            "url",
            "host",
            "pid",
            "token",
            "version",
            "store_id",
            "epoch",
            "started_s",
        }
        status = started.api.get("/status").json()
        assert (status["policy"], status["epoch"]) == ("srtf+steepest+tune", 1)
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        for name in ("server.json", "token", "store.db"):
            assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
        nodes = started.api.get("/nodes").json()["nodes"]
        assert [node["cpus"] for node in nodes] == [len(os.sched_getaffinity(0))]
        job = started.api.submit(("echo", "hi"))
        started.api.wait(job["job_id"], "done")
        assert started.api.get(f"/jobs/{job['job_id']}/logs").text == "hi\n"
        code, said = started.end()
    assert code == 0
    (line,) = said.splitlines()
    assert re.match(r"trainyard: \d+ CPUs, \d+ GB, .*; limits: .*; one trust domain: ", line)
    assert line == f"trainyard: {status['notes'][0]}"
    assert not (data / "server.json").exists()


def test_a_second_one_on_the_same_store_is_told_who_has_it(tmp_path):
    with up(tmp_path) as started:
        since = r"since \d\d:\d\d \(epoch 1\); trainyard status shows it"
        owner = f"the store is owned by pid {started.process.pid} on .* {since}"
        assert re.fullmatch(owner, refused(1, "--data", str(tmp_path), "--listen", "127.0.0.1:0"))
        # With the same address too, as by two plain `trainyard up`.
        address = started.file["url"].removeprefix("http://")
        assert re.fullmatch(owner, refused(1, "--data", str(tmp_path), "--listen", address))
        taken = refused(1, "--data", str(tmp_path / "other"), "--listen", address)
        assert taken == f"--listen {address}: Address already in use; give another address"
        assert started.api.get("/status").status_code == 200
        assert json.loads((tmp_path / "server.json").read_bytes()) == started.file


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_jobs_go_on_without_it_and_are_found_again(tmp_path, quick, number):
    data = tmp_path / "data"
    with up(data, *quick, leave=True) as first:
        one = first.api.submit("while [ ! -e go ]; do sleep 0.05; done; echo end", workdir=str(tmp_path))[
            "job_id"
        ]
        two = first.api.submit("sleep 600")["job_id"]
        for job in (one, two):
            first.api.wait(job, "running")
        code, _ = first.end(number)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    assert (data / "server.json").exists() is (number == signal.SIGKILL)
    (tmp_path / "go").touch()  # one ends while nobody looks
    with up(data, *quick) as second:
        assert second.file["token"] == first.file["token"]
        assert (second.file["store_id"], second.file["epoch"]) == (first.file["store_id"], 2)
        done = second.api.wait(one)
        assert (done["state"], done["attempt"]) == ("done", 1)
        assert second.api.get(f"/jobs/{one}/logs").text == "end\n"
        assert (second.api.job(two)["state"], second.api.job(two)["attempt"]) == ("running", 1)
        assert second.api.get("/policy").json() == first_policy()


def first_policy():
    return {"policy": "srtf+steepest+tune"}


def test_down_without_a_checkpoint_lets_jobs_go_on(tmp_path, quick):
    data = tmp_path / "data"
    with up(data, *quick, leave=True) as first:
        job = first.api.submit("sleep 600")["job_id"]
        first.api.wait(job, "running")
        with first.api.events() as events:
            assert first.api.post("/down").json() == {"running": 1}
            words = [told for name, told, _ in events if name == "bye"]
        assert words == [{"go_on": 1, "saved": 0, "not_saved": 0, "over": 0}]
        assert first.process.wait(60) == 0
    with up(data, *quick) as second:
        assert second.api.job(job)["attempt"] == 1


def test_down_with_a_checkpoint_waits_until_everything_has_saved_its_work(tmp_path, quick):
    data = tmp_path / "data"
    with up(data, *quick, leave=True) as first:
        saves = first.api.submit([sys.executable, "-c", SAVES], workdir=str(tmp_path))["job_id"]
        does_not = first.api.submit("trap '' TERM; while :; do sleep 0.05; done", grace_s=0.2)["job_id"]
        until(lambda: first.api.get(f"/jobs/{saves}/logs").text == "ready\n")
        first.api.wait(does_not, "running")
        with first.api.events() as events:
            assert first.api.post("/down", {"checkpoint": True}).json() == {"running": 2}
            seen = list(events)
        assert [told for name, told, _ in seen if name == "bye"] == [
            {"go_on": 0, "saved": 1, "not_saved": 1, "over": 0}
        ]
        assert first.process.wait(60) == 0
    assert (data / "jobs" / saves / "checkpoint" / "saved").exists()
    (tmp_path / "go").touch()
    with up(data, *quick) as second:
        done = second.api.wait(saves)
        assert (done["state"], done["attempt"]) == ("done", 2)
        second.api.wait(does_not, "running")


def test_who_asks_twice_does_not_wait(tmp_path):
    (tmp_path / "settings.yaml").write_text("grace_s: 500\n")
    options = ("--settings", str(tmp_path / "settings.yaml"))
    with up(tmp_path / "data", *options, leave=True) as first:
        job = first.api.submit("trap '' TERM; echo deaf; while :; do sleep 0.05; done")["job_id"]
        until(lambda: first.api.get(f"/jobs/{job}/logs").text == "deaf\n")
        first.api.post("/down", {"checkpoint": True})
        first.api.wait(job, "stopping")
        assert first.api.post("/jobs", {"command": ["x"], "workdir": "/"}).status_code == 503
        code, said = first.end()
    assert code == 0
    assert "1 jobs save their work and stop" in said
    with up(tmp_path / "data", *options) as second:
        assert second.api.job(job)["state"] in ("stopping", "killing")


def test_other_options_are_taken_over_and_said(tmp_path, quick):
    data = tmp_path / "data"
    with up(data, *quick, "--policy", "fifo") as first:
        assert first.api.get("/policy").json() == {"policy": "fifo"}
        assert len(first.api.get("/nodes").json()["nodes"]) == 2
    (tmp_path / "cluster.yaml").write_text(NODES.replace("count: 2", "count: 3"))
    with up(data, *quick, "--policy", "las", "--round-s", "60", "--seed", "7") as second:
        assert second.api.get("/policy").json() == {"policy": "las"}
        assert len(second.api.get("/nodes").json()["nodes"]) == 3
        _, said = second.end()
    assert "the policy is now las" in said
    assert "now round_s is 60.0, seed is 7" in said
    assert re.search(r"node .* is new", said)
    with up(data) as third:
        assert third.api.get("/policy").json() == {"policy": "las"}  # as before
        assert len(third.api.get("/nodes").json()["nodes"]) == 3


def test_models_of_a_file_are_known(tmp_path):
    (tmp_path / "profiles.yaml").write_text("own: {batch: 32, compute: {per_sample_s: {V100: 0.001}}}\n")
    with up(tmp_path / "data", "--profiles", str(tmp_path / "profiles.yaml")) as started:
        job = started.api.submit(model="own", samples=1000)
        assert started.api.wait(job["job_id"])["model"] == "own"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ("--listen", "7410"),
            "--listen 7410: give HOST:PORT, such as 127.0.0.1:7410 (port 0: any that is free)",
        ),
        (("--listen", "256.0.0.1:0"), "--listen 256.0.0.1:0: there is no host of this name"),
        (("--backend", "slrm"), "--backend slrm: there is no such backend; known: local"),
        (("--policy", "stf"), "policy 'stf': unknown stage 'stf'; did you mean 'srtf'?"),
        (("--round-s", "0"), "--round-s 0: give a number from 0.01 to 1e+12"),
        (("--seed", "-1"), "--seed -1: give a number from 0 to 9.22337e+18"),
        (
            ("--store", "postgresql://ann:secret@host/db"),
            "--store: a password on the command line is seen by",
        ),
        (("--store", "mysql://host/db"), "--store: mysql is not supported; use postgresql:// or sqlite:///"),
        (
            ("--store", "nonsense"),
            "--store: this is no URL; write postgresql://USER@HOST/DATABASE or sqlite:///FILE",
        ),
        (("--store", "sqlite://"), "--store: a store in memory would be lost; give sqlite:///FILE"),
        (
            ("--store", "sqlite:////no/such/store.db"),
            "--store: there is no directory /no/such; make it first",
        ),
        (("--store", "env:NO_SUCH"), "--store env:NO_SUCH: the variable NO_SUCH is not set"),
        (("--cluster", "none.yaml"), "none.yaml: there is no such file"),
        (("--settings", "none.yaml"), "none.yaml: there is no such file"),
        (("--profiles", "none.yaml"), "none.yaml: there is no such file"),
        (("--data", "/proc/x"), "--data /proc/x: no files can be written here: "),
        (("--data", ""), "--data: the directory has no name; give one such as ~/trainyard"),
    ],
)
def test_a_mistake_gets_one_line_and_leaves_nothing(tmp_path, cli, monkeypatch, options, line):
    monkeypatch.chdir(tmp_path)
    data = () if "--data" in options else ("--data", str(tmp_path / "data"))
    code, out, said = cli("up", *data, *options)
    assert (code, out, said.count("\n")) == (2, "", 1)
    assert said.startswith(f"trainyard: error: {line}")
    assert not (tmp_path / "data" / "server.json").exists()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("nodes: []", "nodes"),
        ("nodes:\n- {count: 1, gpu: 2}", "did you mean 'gpus'?"),
        ("observe_s: -1", "must be a number of at least 0"),
        ("observ_s: 1", "there is no setting 'observ_s'; did you mean 'observe_s'?"),
    ],
)
def test_a_file_that_is_wrong_is_told_by_its_line(tmp_path, cli, monkeypatch, content, line):
    monkeypatch.chdir(tmp_path)
    option = "--cluster" if content.startswith("nodes") else "--settings"
    (tmp_path / "file.yaml").write_text(content)
    code, _, said = cli("up", "--data", str(tmp_path / "data"), option, "file.yaml")
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("trainyard: error: file.yaml, ")
    assert line in said


def test_a_store_that_is_none_is_told(tmp_path):
    (tmp_path / "store.db").write_bytes(b"this is no database, but it is long enough to look at" * 20)
    said = refused(1, "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert said == "the store cannot be opened: file is not a database"


def test_a_controller_that_another_one_pushed_aside_ends_with_one_line(tmp_path):
    """The lock was lost, and somebody else began an epoch: this one must not write any more."""
    with up(tmp_path) as started:
        import sqlite3

        with sqlite3.connect(tmp_path / "store.db", timeout=30) as connection:
            connection.execute("UPDATE meta SET value = '2' WHERE name = 'epoch'")
        connection.close()
        answer = started.api.post("/jobs", {"command": ["true"], "workdir": "/"})
        assert answer.status_code == 503
        code, said = (started.process.wait(60), started.end()[1])
    assert code == 1
    error = (
        "trainyard: error: the controller ended: another controller has taken over (epoch 2, this one has 1)"
    )
    assert said.splitlines()[-1] == error


@pytest.mark.skipif(not postgres_cases.is_there(), reason=postgres_cases.MISSING)
def test_a_store_in_postgresql(tmp_path):
    with contextlib.closing(postgres_cases.Postgres()) as server:
        url = server.new_database().replace("+psycopg://test@", "://test:secret@")
        store, env = ("--store", "env:OUR_STORE"), {**os.environ, "OUR_STORE": url}
        with up(tmp_path / "one", *store, env=env) as started:
            job = started.api.submit(("echo", "hi"))["job_id"]
            started.api.wait(job, "done")
            told = started.api.get("/status").json()["store"]
            assert (told["kind"], told["bytes"]) == ("postgresql", None)
            assert "secret" not in told["url"]
            other = ("--data", str(tmp_path / "two"), "--listen", "127.0.0.1:0")
            assert refused(1, *other, *store, env=env).startswith("the store is owned by pid ")
            code, said = started.end()
            assert (code, "secret" in said) == (0, False)
        with up(tmp_path / "one", *store, env=env) as again:
            assert again.api.job(job)["state"] == "done"


def test_a_store_that_does_not_answer_is_told(tmp_path, cli):
    code, _, said = cli(
        "up", "--data", tmp_path, "--listen", "127.0.0.1:0", "--store", "postgresql://x@127.0.0.1:1/y"
    )
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("trainyard: error: the store cannot be opened: connection failed: ")


def test_whoever_listens_elsewhere_is_warned(tmp_path):
    with up(tmp_path, listen="0.0.0.0:0") as started:
        assert started.ready.startswith("ready http://127.0.0.1:")
        _, said = started.end()
    assert "can be reached from elsewhere: tokens and jobs travel in clear" in said


@pytest.mark.parametrize("words", [("--help",), ("policies",)])
def test_other_commands_load_neither_the_store_nor_the_api(words):
    script = (
        "import sys\nfrom trainyard.cli.main import run\n"
        f"sys.argv = ['trainyard', *{words!r}]\n"
        "try: run()\nexcept SystemExit: pass\n"
        "print([m for m in ('sqlalchemy', 'fastapi', 'uvicorn', 'httpx', 'alembic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
