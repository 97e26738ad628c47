"""Controllers for tests of the API: one in a thread, and real `up` processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.daemon import Live, Options, make_controller
from trainyard.live.settings import Settings
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.model.cluster import Cluster, Node
from trainyard.model.tenant import Tenant
from trainyard.model.zoo import ZOO
from trainyard.server.desk import Desk
from trainyard.server.network import bind, url_of
from trainyard.server.serving import Serving, make_desk

PATIENCE_S = 60.0  # on a busy machine
TOKEN = "a-token-of-tests"
SETTINGS = Settings(
    grace_s=5.0,
    kill_s=1.0,
    observe_s=0.5,
    again_s=0.5,
    back_off_s=0.05,
    most_back_off_s=0.2,
    delta_s=0.05,
    keep_alive_s=0.3,
    store_s=1.0,
)
TENANTS = {"vision": Tenant("vision", limit=2, max_priority=10)}
CLUSTER = Cluster(
    "tests",
    (Node("a", "V100", 2, 4.0, 8.0), Node("b", "A100", 2, 4.0, 8.0)),
    tenants=TENANTS,
)
OVER = ("done", "failed", "cancelled")


def until(look: Callable[[], Any], what: str = "it") -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen in {PATIENCE_S:g} s")


@dataclass
class Api:
    """What a test asks."""

    url: str
    token: str = TOKEN
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx.Client(
            base_url=f"{self.url}/api/v1", headers=headers, timeout=PATIENCE_S, trust_env=False
        )

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.client.get(path, params=query)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.client.post(path, json={} if body is None else body, **more)

    def submit(self, command: Any = ("true",), **fields: Any) -> dict[str, Any]:
        command = list(command) if isinstance(command, tuple) else command
        answer = self.post("/jobs", {"command": command, "workdir": "/", **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def job(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/jobs/{job_id}").json()

    def wait(self, job_id: str, *states: str) -> dict[str, Any]:
        wanted = states or OVER

        def look() -> Any:
            job = self.job(job_id)
            return job if job["state"] in wanted else None

        return until(look, f"job {job_id} {' or '.join(wanted)}")

    def refused(self, path: str, body: Any, status: int = 422) -> tuple[str, str | None]:
        """Post something wrong; return what is said of it."""
        return told(self.post(path, body), status)

    @contextlib.contextmanager
    def events(self, topics: str = "yard", after: str = "", **headers: str) -> Iterator[Iterator[Any]]:
        """Read events: (name, data, id) each, a comment as ("", None, "")."""
        query = {"topics": topics, "after": after}
        with self.client.stream("GET", "/events", params=query, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            yield _events(answer)

    def clear(self) -> None:
        """End all jobs."""
        for job in self.get("/jobs").json()["jobs"]:
            if job["state"] not in OVER:
                self.post(f"/jobs/{job['job_id']}/cancel", {"now": True})
                self.wait(job["job_id"])


def _events(answer: httpx.Response) -> Iterator[tuple[str, Any, str]]:
    name, data, identity = "", None, ""
    for line in answer.iter_lines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            data = json.loads(value)
        elif key == "id":
            identity = value
        elif not line:
            yield name, data, identity
            name, data, identity = "", None, ""


def told(answer: httpx.Response, status: int) -> tuple[str, str | None]:
    """Return the one line and the field of an answer that is an error."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "field"}
    assert "\n" not in error["message"]
    return error["message"], error["field"]


# -- a controller in a thread ------------------------------------------------------------------------------


@dataclass
class Served(Api):
    """A controller of this process; `desk` is what its answers are made from."""

    desk: Desk = None  # type: ignore[assignment]
    loop: asyncio.AbstractEventLoop = None  # type: ignore[assignment]
    downs: list[bool] = field(default_factory=list)  # what /down asked for

    @property
    def live(self) -> Live:
        return self.desk.live


@contextlib.contextmanager
def served(root: Path, cluster: Cluster = CLUSTER, policy: str = "fifo", **settings: Any) -> Iterator[Served]:
    """Run a controller in a thread, with real processes as jobs."""
    answers: queue.Queue[Any] = queue.Queue()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(root, cluster, policy, replace(SETTINGS, **settings), answers))
    )
    thread.start()
    api, stop = answers.get(timeout=PATIENCE_S)
    try:
        yield api
        if not api.live.stopped.is_set():
            api.clear()
    finally:
        api.client.close()
        api.loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


async def _serve(root: Path, cluster: Cluster, policy: str, settings: Settings, answers: Any) -> None:
    store = Store(connect(f"sqlite:///{root / 'store.db'}"))
    controller, undone, starts, _ = make_controller(
        store, Options(cluster, policy, settings=settings), (cluster, policy)
    )
    backend = LocalBackend(root, store.store_id, store.epoch, settings)
    live, stop, downs = Live(controller, backend), asyncio.Event(), []
    models = {name: entry.profile for name, entry in ZOO.items()}
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        async with live.running(undone, starts):
            desk = make_desk(live, models, ["a note"], "limits", downs.append)
            serving = Serving(desk, TOKEN, taken, "127.0.0.1")
            await serving.begin()
            answers.put((Served(url_of(taken), TOKEN, desk, asyncio.get_running_loop(), downs), stop))
            await stop.wait()
            await serving.end()
    backend.close()
    store.close()
    for shim in backend._shims:
        await asyncio.to_thread(shim.wait, PATIENCE_S)


# -- real processes ------------------------------------------------------------------------------------------


COMMAND = (sys.executable, "-c", "from trainyard.cli.main import run; run()")


def command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **more
    )


class Up:
    """A controller as users start it."""

    def __init__(self, data: Path, *arguments: str, listen: str = "127.0.0.1:0", **more: Any) -> None:
        self.data = data
        options = ("--data", str(data), "--listen", listen, *arguments)
        self.process = subprocess.Popen(
            [*COMMAND, "up", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        if not self.ready:
            _, said = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"it did not start: {said}")
        self.file = json.loads((data / "server.json").read_bytes())
        self.api = Api(self.file["url"], self.file["token"])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and what was logged."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        rest, said = self.process.communicate(timeout=PATIENCE_S)
        self.api.client.close()
        assert rest == ""  # one line on stdout, and no more
        return self.process.returncode, said


@contextlib.contextmanager
def up(data: Path, *arguments: str, leave: bool = False, **more: Any) -> Iterator[Up]:
    """Run `up`; at the end it is gone, and so are its jobs, unless they are left for the next one."""
    started, passed = Up(data, *arguments, **more), False
    try:
        yield started
        passed = True
    finally:
        if started.process.poll() is None and not (leave and passed):
            started.api.clear()
        started.end()
