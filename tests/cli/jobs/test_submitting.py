"""`submit` against a real controller: what arrives there, what is refused, and that it arrives once."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest

from controller_cases import Commands, controlled
from trainyard.cli.jobs.submission import FROM_SHELL


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    yield from controlled(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def run(yard, monkeypatch, capsys):
    return Commands(yard, monkeypatch, capsys)


def test_the_id_stands_alone_on_stdout(yard, run):
    job_id = run.out("submit", "--", "true").removesuffix("\n")
    assert job_id.isdigit()
    assert yard.reaches(job_id, "done")["command"] == ["true"]


def test_options_arrive(yard, run):
    first = run.json("submit", "--name", "first", "--json", "--", "true")
    options = "--name big --gpus 2 --model resnet50 --samples 1e5 --tenant vision --priority -5 --cpus 1.5"
    more = "--memory-gb 1 --gpu-type V100 --retries 3 --after first --time-limit 12h --grace 30s"
    job = run.json(
        "submit", *options.split(), *more.split(), "--json", "--", "echo", "--gpus", "7", "--", "x"
    )
    assert job["job_id"] == str(int(first["job_id"]) + 1)
    wanted = {"name": "big", "min_gpus": 2, "max_gpus": 2, "model": "resnet50", "samples_total": 1e5}
    wanted |= {"tenant": "vision", "priority": -5, "gpu_type": "V100", "retries": 3}
    wanted |= {"command": ["echo", "--gpus", "7", "--", "x"], "workdir": str(yard.folder)}
    assert {name: job[name] for name in wanted} == wanted
    assert yard.reaches(job["job_id"], "done")["exit_code"] == 0


def test_an_elastic_job(run):
    job = run.json("submit", "--min", 1, "--max", 4, "--json", "true")
    assert (job["min_gpus"], job["max_gpus"]) == (1, 4)


def test_the_shell_gives_its_path_and_the_rest_is_asked_for(yard, run, monkeypatch):
    for name in FROM_SHELL:
        monkeypatch.setenv(name, f"{os.environ['PATH']}:/of/{name}")
    monkeypatch.setenv("UNASKED", "1")
    keeps = "import json, os; json.dump(dict(os.environ), open('env.json', 'w'))"
    job = run.json("submit", "--env", "LR=0.1=x", "--env", "EMPTY=", "--json", "--", "python3", "-c", keeps)
    yard.reaches(job["job_id"], "done")
    seen = json.loads((yard.folder / "env.json").read_text())
    assert {name for name in FROM_SHELL if seen[name].endswith(f":/of/{name}")} == {*FROM_SHELL}
    assert (seen["LR"], seen["EMPTY"], seen.get("UNASKED")) == ("0.1=x", "", None)
    assert seen["TRAINYARD_JOB_ID"] == job["job_id"]


def test_a_secret_in_the_open_is_noted(run):
    code, out, err = run("submit", "--env", "WANDB_API_KEY=abc", "--", "true")
    assert (code, out.strip().isdigit()) == (0, True)
    assert err.startswith("note: WANDB_API_KEY looks like a secret")
    assert "abc" not in err


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("submit", "COMMAND is missing; give COMMAND (see 'trainyard submit --help')"),
        (
            "submit job.yaml",
            "job.yaml: job files are not there yet; "
            "give options and the command: trainyard submit --gpus 1 -- python train.py",
        ),
        ("submit --gpus 2 --min 1 --max 2 -- true", "--gpus is for a job of one size, --min and --max for an "
         "elastic one; give one kind"),
        ("submit --min 1 -- true", "--min and --max belong together; give both"),
        ("submit --min 3 --max 2 -- true", "--min: 3 is more than max 2; it must be at most that"),
        ("submit --gpus 0 -- true", "--gpus: 0 does not fit; give a whole number from 1 to 1000000"),
        ("submit --gpus x -- true", "--gpus: 'x' is not a whole number; give one such as 42"),
        ("submit --gpus 64 -- true", "--gpus: 64, but the cluster has 4 GPUs; trainyard nodes shows them"),
        (
            "submit --time-limit 720 -- true",
            "--time-limit: 720 has no unit; write 720m (minutes, as in Slurm) or 720s",
        ),
        ("submit --grace 1w -- true", "--grace: '1w' is no duration; give one such as 90s, 30m, 12h or 2d"),
        ("submit --env LR -- true", "--env 'LR': give NAME=VALUE"),
        ("submit --env RANK=1 -- true", "--env RANK: trainyard sets this variable itself; leave it out"),
        ("submit --after nobody -- true", "no job is called 'nobody'; trainyard ps -a shows all"),
        ("submit --gpu-type A1 -- true", "--gpu-type: no node has GPUs of type 'A1'; known: V100"),
        ("submit --gpu 2 -- true", "unknown option '--gpu'; did you mean '--gpus'?"),
        ("run --priority 101 -- true", "--priority: 101 does not fit; give a whole number from -100 to 100"),
    ],
)  # fmt: skip
def test_what_is_refused_and_nothing_is_stored(yard, run, words, wrong):
    before = yard.ask("/jobs?all=1")["total"]
    assert run.error(*words.split()) == (2, wrong)
    assert yard.ask("/jobs?all=1")["total"] == before


def test_the_error_as_json(run):
    code, out, err = run("submit", "--gpus", "64", "--json", "--", "true")
    assert (code, err.count("\n")) == (2, 1)
    told = json.loads(out)["error"]
    assert (told["code"], told["field"]) == ("invalid", "gpus")
    assert err == f"trainyard: error: {told['message']}\n"


def test_wrong_use_is_json_too(run):
    code, out, _ = run("submit", "--gpus", "x", "--json", "--", "true")
    assert (code, json.loads(out)["error"]["code"]) == (2, "invalid")
    code, out, _ = run("submit", "--gpus", "x", "--", "true", "--json")
    assert (code, out) == (2, "")


def test_a_directory_that_is_gone(yard, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = yard.run("submit", "--", "true", preexec_fn=gone.rmdir, cwd=gone)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "trainyard: error: this directory is gone; submit from one that exists\n"


class Breaker:
    """Stands before a controller; takes the first answers and lets nobody have them."""

    def __init__(self, address, breaks):
        self._address, self._left = address, breaks
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            client, _ = self._listener.accept()
            with client:
                asked = client.recv(1 << 20)
                if not asked:
                    return
                while asked.find(b"\r\n\r\n") < 0 or not asked.endswith(b"}"):
                    asked += client.recv(1 << 20)
                with socket.create_connection(self._address) as server:
                    server.sendall(asked)
                    answer = b"".join(iter(lambda: server.recv(1 << 20), b""))
                if self._left:
                    self._left -= 1
                else:
                    client.sendall(answer)

    def close(self):
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()


@pytest.fixture
def broken(yard, monkeypatch):
    """Put a breaker between the commands and the controller."""
    about = json.loads((yard.data / "server.json").read_text())
    host, port = about["url"].removeprefix("http://").split(":")
    made = []

    def make(breaks):
        made.append(Breaker((host, int(port)), breaks))
        monkeypatch.setenv("TRAINYARD_URL", made[-1].url)
        monkeypatch.setenv("TRAINYARD_TOKEN", about["token"])
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_broken_connection_does_not_make_two_jobs(yard, run, broken):
    before = yard.ask("/jobs?all=1")["total"]
    broken(1)
    job_id = run.out("submit", "--name", "once", "--", "true").strip()
    assert yard.job(job_id)["name"] == "once"
    assert yard.ask("/jobs?all=1")["total"] == before + 1


def test_a_connection_that_breaks_again_is_told(run, broken):
    url = broken(2).url
    code, wrong = run.error("submit", "--", "true")
    assert code == 1
    assert wrong.startswith(f"no controller answers at {url} (from TRAINYARD_URL): ")
