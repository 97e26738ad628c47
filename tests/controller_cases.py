"""A real controller for tests of commands: a process of its own, with pretend nodes and short time-outs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from conftest import command
from recorded_logs import replay

TRAINYARD = Path(sys.executable).with_name("trainyard")
PATIENCE_S = 120.0  # a busy machine makes no test fail
CLUSTER = "nodes:\n  - {count: 2, gpu_type: V100, gpus: 2, cpus: 2, memory_gb: 2}\n"
SETTINGS = "{grace_s: 5, kill_s: 0.5, back_off_s: 0.1, observe_s: 0.2, again_s: 0.5}\n"
OVER = ("done", "failed", "cancelled")
UNTIL = "until [ -e {} ]; do sleep 0.05; done"  # a job for the shell that ends when a file is there


def until(true, what="it"):
    """Wait for something that happens in other processes."""
    end_s = time.monotonic() + PATIENCE_S
    while not (found := true()):
        assert time.monotonic() < end_s, f"{what} did not happen in {PATIENCE_S:g} s"
        time.sleep(0.05)
    return found


def listens(process):
    """Wait until a command has a stream of events: a connection that stays."""

    def stays():
        before = _sockets(process.pid)
        time.sleep(0.3)
        return process.poll() is not None or before & _sockets(process.pid)

    until(stays, "a stream of events")
    assert process.poll() is None


def _sockets(pid):
    folder, found = f"/proc/{pid}/fd", set()
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found.add(os.readlink(f"{folder}/{name}"))
    return {each for each in found if each.startswith("socket:")}


class Command(subprocess.Popen):
    """A process that a test which fails does not wait for."""

    def __exit__(self, kind, *more):
        if kind is not None:
            self.kill()
        super().__exit__(kind, *more)


class Controlled:
    """A controller, and the folder in which tests and jobs have their files."""

    def __init__(self, folder, cluster=CLUSTER):
        self.folder, self.data = folder, folder / "data"
        (folder / "c.yaml").write_text(cluster)
        (folder / "s.yaml").write_text(SETTINGS)
        self.process = None
        self.start()

    def start(self):
        """Start it, and wait until it accepts jobs."""
        with open(self.folder / "up.err", "ab") as errors:
            files = ("--cluster", self.folder / "c.yaml", "--settings", self.folder / "s.yaml")
            policy = ("--policy", "fifo")  # it stops no job for another one
            words = [TRAINYARD, "up", *policy, "--data", self.data, "--listen", "127.0.0.1:0", *files]
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("ready http://127.0.0.1:"), (self.folder / "up.err").read_text()

    def kill(self):
        """End it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self._gone()

    def _gone(self):
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()

    def close(self):
        """End all jobs and then the controller; nothing is left."""
        if self.process.poll() is not None:
            self._gone()
            self.start()
        try:
            until(self._cancelled, "the end of all jobs")
        finally:
            self.process.terminate()
            self._gone()
        replay(f"sqlite:///{self.data}/store.db")

    def _cancelled(self):
        """End all jobs; say whether they are over."""
        left = [job["job_id"] for job in self.jobs() if job["state"] not in OVER]
        for job_id in left:
            with suppress(HTTPError):  # it has ended meanwhile, or is about to
                self.ask(f"/jobs/{job_id}/cancel", {"now": True})
        return not left

    def ask(self, path, body=None):
        """Ask the API, past the commands."""
        about = json.loads((self.data / "server.json").read_text())
        request = Request(
            f"{about['url']}/api/v1{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {about['token']}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def jobs(self):
        return self.ask("/jobs")["jobs"]

    def job(self, job_id):
        return self.ask(f"/jobs/{job_id}")

    def reaches(self, job_id, *states):
        """Wait until a job is in one of these states; return it."""

        def there():
            job = self.job(job_id)
            return job if job["state"] in states else None

        return until(there, f"job {job_id} in {states}")

    def run(self, *words, **more):
        """Run a command as a process; return how it ended."""
        calm = {"capture_output": True, "text": True, "timeout": PATIENCE_S, "check": False}
        return subprocess.run([TRAINYARD, *map(str, words)], **calm | self._at(more))

    def popen(self, *words, **more):
        """Start a command as a process."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return Command([TRAINYARD, *map(str, words)], **pipes | self._at(more))

    def _at(self, more):
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
        environment = own | {"TRAINYARD_DATA": str(self.data)} | more.pop("env", {})
        return {"cwd": self.folder, "env": environment, **more}


def controlled(folder):
    """Yield a controller, and end it and all its jobs; a fixture of a module is made of this."""
    made = Controlled(folder)
    try:
        yield made
    finally:
        made.close()


class Commands:
    """Runs commands in this process, against a controller."""

    def __init__(self, yard, monkeypatch, capsys):
        self._monkeypatch, self._capsys = monkeypatch, capsys
        for name in ("TRAINYARD_URL", "TRAINYARD_TOKEN", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TRAINYARD_DATA", str(yard.data))
        monkeypatch.chdir(yard.folder)

    def __call__(self, *words):
        """Run a command; return exit code, stdout and stderr."""
        return command(self._monkeypatch, self._capsys, *words)

    def out(self, *words):
        """Run a command that must succeed and say nothing on stderr; return what it printed."""
        code, out, err = self(*words)
        assert (code, err) == (0, "")
        return out

    def json(self, *words):
        """Run a command with --json that must succeed; return what it printed."""
        return json.loads(self.out(*words))

    def error(self, *words):
        """Run a command that must fail; return its exit code and the one line that says why."""
        code, out, err = self(*words)
        assert out == ""
        assert err.count("\n") == 1
        return code, err.removeprefix("trainyard: error: ").rstrip("\n")
