"""A whole live system in a folder: controller, store, local backend and real processes, on its own loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path

from local_cases import NO_GROUPS, PATIENCE_S, SHORT, groups_of, is_alive, left_of, until
from trainyard.core.validate import validate
from trainyard.live.backends.base import RunKey
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.daemon import Live, Options, make_controller
from trainyard.live.deciding import Decider
from trainyard.live.recovery import check_log
from trainyard.live.settings import Settings
from trainyard.live.store import reading
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.views import Info
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.terms import Terms

QUICK = Settings(
    grace_s=PATIENCE_S,
    kill_s=0.5,
    observe_s=0.1,
    again_s=0.2,
    back_off_s=0.05,
    most_back_off_s=0.1,
)
TERMS = {field.name for field in fields(Terms)}


def nodes(count=1, gpus=2, memory_gb=8.0):
    """Pretended nodes n0, n1, ..."""
    return Cluster("test", tuple(Node(f"n{i}", "GPU", gpus, 2.0 * gpus, memory_gb) for i in range(count)))


class World:
    """Runs jobs for real. Tests stand outside: they submit, wait and look."""

    def __init__(self, root, cluster=None, settings=QUICK, policy="fifo", limits=NO_GROUPS):
        self.root, self.cluster = Path(root), cluster or nodes()
        self.settings, self.policy, self.limits = settings, policy, limits
        self._ready, self._ends = threading.Event(), Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self.trouble = None

    def __enter__(self):
        self._thread.start()
        self._ready.wait(PATIENCE_S)
        assert self.trouble is None, self.trouble
        return self

    def __exit__(self, *failure):
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        if failure[0] is None:
            assert self.trouble is None, self.trouble

    async def _live(self):
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._work()
        except BaseException as error:
            self.trouble = error
        finally:
            self._ready.set()

    async def _work(self):
        store = Store(connect(f"sqlite:///{self.root}/store.db"))
        options = Options(self.cluster, self.policy, settings=self.settings)
        made = make_controller(store, options, (self.cluster, self.policy))
        self.controller, opened, starts = made[:3]
        self.backend = LocalBackend(self.root, store.store_id, store.epoch, self.settings, self.limits)
        self.live = Live(self.controller, self.backend)
        async with self.live.running(opened, starts):
            self._ready.set()
            await self._over.wait()
            await self.live.pause(stop=False)
            await self.live.write_snapshot()
            validate(self.controller.yard)
        self.backend._pool.shutdown(wait=True)
        await self._end_everything(store)
        with store.engine.connect() as connection:
            check_log(connection, Decider())  # whatever happened: it happens again when it is replayed
        store.close()
        prefix = self.backend.layout.prefix
        assert (left_of(prefix), groups_of(prefix)) == ([], [])
        if self.live.shell.failure is not None:
            raise self.live.shell.failure

    async def _end_everything(self, store):
        """Leave no process behind, whatever a test did."""
        sweeper = LocalBackend(self.root, store.store_id, store.epoch, self.settings, self.limits)
        for key in list(sweeper._marked):
            while not all(seen.ended for seen in (await sweeper.observe([key])).members.values()):
                await sweeper.ensure_gone(key)
                await asyncio.sleep(0.01)
        sweeper.close()
        for shim in list(self.backend._shims):
            shim.wait(PATIENCE_S)

    # -- what tests do ---------------------------------------------------------------------------------------

    def ask(self, ask):
        """Have something done in the controller's thread."""
        return self.live.shell.ask(ask).result(PATIENCE_S)

    def tell(self, event, *arguments, **more):
        """Tell the core of an event that happens now; return its answer."""
        return self.ask(lambda c: c.tell(event(c.clock.now(), *arguments, **more), "tester"))

    def submit(self, command, gpus=1, env=None, workdir="/", grace_s=None, **more):
        """Hand a job in; return its id. Terms may be among the rest."""
        for name, meaning in SHORT.items() if isinstance(command, str) else ():
            command = command.replace(name, meaning)
        spec = {"command": command, "workdir": str(workdir), "env": env or {}, "grace_s": grace_s}
        terms = Terms(**{name: more.pop(name) for name in TERMS & set(more)})

        def hand_in(controller):
            number, now = controller.number + 1, controller.clock.now()
            job = Job(str(number), now, gpus, terms=terms, **more)
            controller.submit(job, Info(number, "test", "ann", spec, now))
            return job.job_id

        return self.ask(hand_in)

    def view(self, job_id):
        """The job as users see it."""
        return self.controller.published.job(job_id)

    def until(self, job_id, *states, **more):
        """Wait for one of these states, and for other things to be so; return the view then."""

        def there():
            view = self.view(job_id)
            fits = view["state"] in states and all(view[name] == value for name, value in more.items())
            return view if fits else None

        try:
            return until(there)
        except AssertionError:
            raise AssertionError(f"{self.view(job_id)}: {self.story(job_id)}") from None

    def story(self, job_id):
        """The job's life in sentences."""
        with self.controller.store.engine.connect() as connection:
            return [f"{row['state']}: {row['text']}" for row in reading.story_of(connection, job_id)]

    def attempts(self, job_id):
        with self.controller.store.engine.connect() as connection:
            return [dict(row) for row in reading.attempts_of(connection, job_id)]

    def file(self, job_id, name):
        return self.backend.layout.checkpoint(job_id) / name

    def ready(self, job_id, name="ready"):
        """Wait until a job has made this file."""
        return until(self.file(job_id, name).exists)

    def pids(self, job_id, attempt=1, node="n0"):
        """The shim of a member and its processes, once all are started."""
        path = self.backend.layout.attempt(RunKey(job_id, attempt)) / node / "shim.json"
        said = json.loads(until(lambda: path.exists() and path.read_text()))
        return said["pid"], said["pids"]

    def kill_worker(self, job_id, attempt=1, number=signal.SIGKILL):
        """Kill a worker from outside."""
        _, (pid, *_) = self.pids(job_id, attempt)
        assert is_alive(pid)
        os.kill(pid, number)


def with_settings(**more):
    return replace(QUICK, **more)
