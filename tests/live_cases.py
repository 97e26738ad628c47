"""Controllers of this process: one whose clock is set by hand, or one at work with a backend that notes."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager

from trainyard.live.backends.base import Ended, Exit, MemberKey, MemberState, Observation, Seen, Unknown
from trainyard.live.clock import SetClock
from trainyard.live.daemon import Live, Options, make_controller
from trainyard.live.settings import Settings
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.views import Info
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.terms import Terms

TWO_NODES = Cluster("pair", (Node("n0", "V100", 2, 8.0, 64.0), Node("n1", "V100", 2, 8.0, 64.0)))
QUICK = Settings(
    observe_s=0.02,
    again_s=0.05,
    act_s=0.3,
    silent_s=0.2,
    store_s=0.0,
    store_again_s=0.02,
    back_off_s=0.01,
    grace_s=0.1,
    most_grace_s=0.1,
)
RUNNING, EXITED = Seen(MemberState.RUNNING), MemberState.EXITED
PATIENCE_S = 30.0


@contextmanager
def controller_of(path, clock=None, **options):
    """The controller of a store, new or as it was, with what it found open; it keeps its intents."""
    store = Store(connect(f"sqlite:///{path}"))
    clock = clock or SetClock()
    asked = Options(**{"cluster": TWO_NODES, "policy": "fifo"} | options)
    made = make_controller(store, asked, (TWO_NODES, "fifo"), lambda not_before_s: clock)
    controller = made[0]
    controller.sent = []
    controller.outbox = controller.sent.extend
    try:
        yield controller, made[1]
    finally:
        store.close()


def hand_in(controller, job_id, gpus=1, **more):
    """Submit a job as a client does, and commit it."""
    now = controller.clock.now()
    job = Job(job_id, now, gpus, **{"duration_s": 100.0} | more)
    spec = {"command": ["true"], "workdir": "/", "env": {}, "grace_s": None}
    answer = controller.submit(job, Info(controller.number + 1, job_id, "ann", spec, now))
    controller.commit()
    return answer


class Noted:
    """A backend that does nothing but note what it was told; `ends` and `hangs` are up to the test."""

    name = "noted"

    def __init__(self) -> None:
        self.noticed = set()
        self.told = []  # everything, in order
        self.members = {}
        self.progress = {}
        self.silent = ""  # why it does not answer, if it does not
        self.answers = asyncio.Event()  # while it is not set, nothing comes back
        self.answers.set()
        self.troubles = []  # what the next acts raise
        self.fences = True

    async def _act(self, what, key):
        self.told.append((what, key))
        await self.answers.wait()
        if self.troubles:
            raise self.troubles.pop(0)

    async def ensure_started(self, run):
        await self._act("start", run.key)
        for member in run.members:
            self.members.setdefault(MemberKey(*run.key, member.node), RUNNING)

    async def ensure_stopping(self, key, grace_s):
        await self._act("stop", key)

    async def ensure_gone(self, key):
        await self._act("kill", key)

    async def end_servers(self, key):
        await self._act("end servers", key)

    async def retune(self, key, shares):
        await self._act("retune", key)
        return True

    async def observe(self, only=None):
        await self.answers.wait()
        if self.silent:
            return Unknown(self.silent)
        members = {key: each for key, each in self.members.items() if only is None or key.run in only}
        return Observation(members, dict(self.progress))

    async def fence(self, node):
        await self._act("fence", node)
        return self.fences

    async def listen(self, hint):
        await asyncio.Event().wait()

    async def forget(self, key):
        self.told.append(("forget", key))
        for member in [member for member in self.members if member.run == key]:
            del self.members[member]

    def end(self, job_id, attempt=1, code=0, **more):
        """All workers of a run end with a code."""
        for key in self.members:
            if key.run == (job_id, attempt):
                exit_ = Exit(0, "worker", code, None, time.time())
                first = exit_ if code not in (0, 75) else None
                self.members[key] = Seen(EXITED, Ended((exit_,), first, **more))


@asynccontextmanager
async def at_work(url, backend, settings=QUICK, policy="fifo", cluster=TWO_NODES, clock=None):
    """A controller of a store with this backend; it ends with the block."""
    store = Store(connect(url))
    try:
        more = {} if clock is None else {"clock": clock}
        options = Options(cluster, policy, settings=settings)
        controller, opened, starts, _ = make_controller(store, options, (cluster, policy), **more)
        live = Live(controller, backend)
        async with live.running(opened, starts):
            yield live
    finally:
        store.close()


def submission(job_id, gpus=1, command=("true",), **more):
    """What a client asks the controller's thread for."""
    spec = {"command": list(command), "workdir": "/", "env": {}, "grace_s": None}

    def ask(controller):
        now = controller.clock.now()
        job = Job(job_id, now, gpus, **{"terms": Terms(retries=3)} | more)
        return controller.submit(job, Info(controller.number + 1, job_id, "ann", spec, now), job_id)

    return ask


def state_of(live, job_id):
    """What readers see of a job."""
    view = live.controller.published.job(job_id)
    return None if view is None else view["state"]


async def until(condition):
    """Wait for something that comes sooner or later."""
    last = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < last, "it did not happen"
        await asyncio.sleep(0.005)
