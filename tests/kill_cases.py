"""Controllers that are killed at any instant, over real processes.

A harness with everything imported forks controllers, so that a life takes a fraction of a second. A kill
counts once the controller said that it is ready, or died at a point that has a name. What must hold in the
end stands in kill_checks.py, protocols that are broken on purpose in broken_protocols.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from trainyard.core.events import JobCancelled, JobHeld, JobReleased
from trainyard.core.validate import validate
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.controller import Controller
from trainyard.live.daemon import Live, Options, make_controller
from trainyard.live.settings import Settings
from trainyard.live.store import reading
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.views import Info
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.terms import Terms

JOB = Path(__file__).with_name("counting_job.py")
IN_RECOVERY = ("owned", "recovered", "reconciled")  # points that every life passes once, before it is ready
AT_WORK = ("before commit", "after commit", "before act", "after act", "before spawn", "after spawn")
# With rounds: a policy that lets jobs take turns needs them here, or all that it does is to stop and start.
POLICIES = (
    ("las", 2.0),
    ("srtf", 0.2),
    ("fifo", None),
    ("srtf+doubling", None),
    ("fifo", 0.3),
    ("las+drf", 2.0),
    ("srtf+doubling", 1.0),
    ("tiresias", None),
)
OVER = frozenset({"done", "failed", "cancelled"})
SETTINGS = Settings(
    grace_s=30.0,  # a busy machine makes no test fail
    kill_s=1.0,
    observe_s=0.2,
    again_s=0.5,
    act_s=20.0,
    back_off_s=0.05,
    most_back_off_s=0.2,
    most_idle=10_000,  # kills by the harness are no fault of the job
    most_starts=10_000,
    snapshot_events=40,
)
LONGEST_S = 60.0  # of a life in which no job ends: then the controller hangs
RARE_S = 1.0  # a point that is not reached for so long is given up

Broken = Callable[[Controller, LocalBackend], None]


@dataclass
class Plan:
    """What one store goes through."""

    seed: int
    root: Path
    url: str
    kills: int
    jobs: int = 8
    steps: int = 100
    every: int = 10
    step_s: float = 0.02
    broken: Broken | None = None  # how the protocol is broken on purpose

    @property
    def policy(self) -> str:
        """Any."""
        return POLICIES[self.seed % len(POLICIES)][0]

    @property
    def round_s(self) -> float | None:
        """Some stores decide in rounds."""
        return POLICIES[self.seed % len(POLICIES)][1]


@dataclass(frozen=True)
class Errand:
    """What one life is for, and how it ends."""

    dies: tuple[str, int] | None = None  # by itself, when it passes this point for the nth time
    kill_s: float | None = None  # the harness kills it, so long after it is ready
    down_s: float | None = None  # it goes down gracefully, so long after it is ready
    checkpoint: bool = False  # ... and stops all jobs first
    hurt_s: float | None = None  # the harness kills a shim or a worker, so long after it is ready
    until: Callable[[Path], bool] | None = None  # the harness kills it once this holds for the plan's folder
    nodes: tuple[str, ...] = ("n0", "n1", "n2")
    longest_s: float = LONGEST_S

    def cluster(self) -> Cluster:
        """Pretended nodes of two GPUs."""
        return Cluster("kills", tuple(Node(name, "GPU", 2, 6.0, 8.0) for name in self.nodes))


@dataclass
class Found:
    """What a harness did, and what was wrong afterwards."""

    kills: Counter[str] = field(default_factory=Counter)  # of controllers, by where
    hurt: Counter[str] = field(default_factory=Counter)  # shims and workers
    downs: int = 0  # graceful ends of controllers
    lives: int = 0
    jobs: int = 0
    attempts: int = 0
    events: int = 0
    repeated: int = 0  # steps
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Count what another one found as well."""
        for name in ("downs", "lives", "jobs", "attempts", "events", "repeated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kills += other.kills
        self.hurt += other.hurt
        self.wrong += other.wrong


# -- a controller's life, in a process of its own ------------------------------------------------------------


async def be_controller(
    plan: Plan, errand: Errand, at: Callable[[str], None], say: Callable[[bytes], object]
) -> bool:
    """Be a controller until all jobs are over, or until it has to go down; whether they are over."""
    store = Store(connect(plan.url))
    at("owned")
    cluster = errand.cluster()
    options = Options(cluster, plan.policy, plan.round_s, settings=SETTINGS)
    controller, opened, starts, _ = make_controller(store, options, (cluster, plan.policy), at=at)
    backend = LocalBackend(plan.root, store.store_id, store.epoch, SETTINGS, at=at)
    if plan.broken is not None:
        plan.broken(controller, backend)
    live = Live(controller, backend, at)
    async with live.running(opened, starts):
        say(b"R")
        over = await _serve(plan, errand, live, lambda: say(b"."))
        await live.write_snapshot()
        validate(controller.yard)
    if live.shell.failure is not None:
        raise live.shell.failure
    backend.close()
    store.close()
    return over


async def _serve(plan: Plan, errand: Errand, live: Live, news: Callable[[], object]) -> bool:
    """Do what users ask for until all jobs are over and nothing of them is left, or it is time to go."""
    began, missing, over = time.monotonic(), list(wanted_jobs(plan)), 0
    while not live.stopped.is_set():
        if errand.down_s is not None and time.monotonic() - began > errand.down_s:
            left = await live.pause(errand.checkpoint)
            assert not left, f"{left} did not stop"
            return False
        if missing:
            await live.ask(partial(hand_in, plan, missing.pop(0)))
        views = live.controller.published.jobs()
        for view in views:
            await _meddle(plan, live, view["job_id"], view["state"])
        if (now_over := sum(view["state"] in OVER for view in views)) > over:
            over = now_over
            news()
        if over == plan.jobs and not os.listdir(plan.root / "runs"):
            return True
        await asyncio.sleep(0.02)
    return False


async def _meddle(plan: Plan, live: Live, job_id: str, state: str) -> None:
    """Be a user who cancels and holds some jobs."""
    number = int(job_id)
    if state == "held":
        await live.ask(lambda controller: controller.tell(JobReleased(controller.clock.now(), job_id)))
    elif state == "running" and is_cancelled(number):
        at_once = number % 20 == 7
        await live.ask(
            lambda controller: controller.tell(JobCancelled(controller.clock.now(), job_id, at_once))
        )
    elif state == "running" and number % 5 == 3 and not (note := plan.root / f"held-{job_id}").exists():
        note.touch()
        await live.ask(lambda controller: controller.tell(JobHeld(controller.clock.now(), job_id)))


def is_cancelled(number: int) -> bool:
    """Whether users cancel a job as soon as it runs."""
    return number % 10 == 7


def wanted_jobs(plan: Plan) -> list[Job]:
    """The jobs of a plan: rigid and elastic ones."""
    rng = Random(plan.seed)
    jobs = []
    for number in range(1, plan.jobs + 1):
        least, most = rng.choice(((None, None), (None, None), (1, 2), (1, 4)))
        jobs.append(Job(str(number), 0.0, 1, min_gpus=least, max_gpus=most, terms=Terms(retries=1000)))
    return jobs


def hand_in(plan: Plan, job: Job, controller: Controller) -> None:
    """Submit a job once, as a client does that repeats its request."""
    with controller.store.engine.connect() as connection:
        if reading.job_of_request(connection, job.job_id) is not None:
            return
    now = controller.clock.now()
    argv = [sys.executable, "-I", "-S", str(JOB), *map(str, (plan.steps, plan.every, plan.step_s))]
    spec: dict[str, object] = {"command": argv, "workdir": "/", "env": {}, "grace_s": None}
    job = Job(job.job_id, now, job.gpus, min_gpus=job.min_gpus, max_gpus=job.max_gpus, terms=job.terms)
    controller.submit(job, Info(int(job.job_id), "count", "tester", spec, now), job.job_id)


# -- the harness ---------------------------------------------------------------------------------------------


def run_lives(plan: Plan) -> Found:
    """Let controllers live and die at random until all jobs are over."""
    rng, found = Random(plan.seed), Found()
    plan.root.mkdir(parents=True, exist_ok=True)
    while found.lives < 20 * (plan.kills + 1):
        if one_life(plan, _errand(plan, rng, found), found, rng) or found.wrong:
            return found
    found.wrong.append(f"jobs are not over after {found.lives} lives")
    return found


def _errand(plan: Plan, rng: Random, found: Found) -> Errand:
    """Choose how the next life ends: half of the kills are at points that have a name."""
    if found.kills.total() >= plan.kills:
        return Errand()
    hurt_s = rng.uniform(0.0, 0.4) if rng.random() < 0.3 else None
    if rng.random() < 0.1:
        return Errand(down_s=rng.uniform(0.0, 0.4), checkpoint=rng.random() < 0.5, hurt_s=hurt_s)
    if 2 * found.kills["random instant"] >= found.kills.total():
        rare = rng.random() < 0.3
        point = (rng.choice(IN_RECOVERY), 1) if rare else (rng.choice(AT_WORK), 1 + int(rng.expovariate(0.4)))
        return Errand(dies=point, kill_s=RARE_S, hurt_s=hurt_s)
    return Errand(kill_s=rng.uniform(0.0, 0.6), hurt_s=hurt_s)


def one_life(plan: Plan, errand: Errand, found: Found, rng: Random) -> bool:
    """Fork a controller and kill it, or let it live; whether it saw all jobs over."""
    found.lives += 1
    receives, sends = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: none of them is ours
        pid = os.fork()
    if pid == 0:
        os.close(receives)
        _be_child(plan, errand, sends)
    os.close(sends)
    try:
        said = _watch(plan, errand, pid, receives, found, rng)
    finally:
        os.close(receives)
    if b"K" in said:  # another thread may have said something after it
        assert errand.dies is not None
        found.kills[errand.dies[0]] += 1
    elif said.endswith(b"D"):
        found.downs += 1
    elif not said.endswith((b"X", b"E")):
        found.wrong.append(f"the controller of life {found.lives} died by itself ({errand}, {said!r})")
    return said.endswith(b"E")


def _be_child(plan: Plan, errand: Errand, sends: int) -> None:
    counts: Counter[str] = Counter()

    def at(label: str) -> None:
        counts[label] += 1
        if errand.dies == (label, counts[label]):
            os.write(sends, b"K")
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60.0)

    code = 1
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    try:
        over = asyncio.run(be_controller(plan, errand, at, lambda said: os.write(sends, said)))
        os.write(sends, b"E" if over else b"D")
        code = 0
    except BaseException as error:
        traceback.print_exception(error)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _watch(plan: Plan, errand: Errand, pid: int, receives: int, found: Found, rng: Random) -> bytes:
    """Follow a life to its end, and end it if that is due; return what it said, and X if it was killed."""
    said, hurt, until = b"", errand.hurt_s is None, time.monotonic() + errand.longest_s
    ready_at: float | None = None
    while True:
        if select.select([receives], [], [], 0.01)[0]:
            news = os.read(receives, 100)
            if not news:
                os.waitpid(pid, 0)
                return said
            said, until = said + news, time.monotonic() + errand.longest_s
            if b"R" in news:
                ready_at = time.monotonic()
        lived = 0.0 if ready_at is None else time.monotonic() - ready_at
        if ready_at is not None and not hurt and errand.hurt_s is not None and lived >= errand.hurt_s:
            hurt = True
            hurt_one(plan, rng, found)
        kill = ready_at is not None and errand.kill_s is not None and lived >= errand.kill_s
        kill = kill or (errand.until is not None and errand.until(plan.root))
        if kill or time.monotonic() > until:
            return _kill(errand, pid, receives, said, kill, found)


def _kill(errand: Errand, pid: int, receives: int, said: bytes, meant: bool, found: Found) -> bytes:
    if not meant:
        os.kill(pid, signal.SIGUSR1)  # it says where it hangs
        time.sleep(0.5)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while news := os.read(receives, 100):  # it may have got to its end just before
        said += news
    if b"K" in said or said.endswith((b"E", b"D")):
        return said
    if meant:
        found.kills["random instant"] += 1
    else:
        found.wrong.append(f"the controller of life {found.lives} hung ({errand}, {said!r})")
    return said + b"X"


def hurt_one(plan: Plan, rng: Random, found: Found) -> None:
    """Kill a shim or a worker."""
    runs = []
    for path in plan.root.glob("jobs/*/*/*/shim.json"):
        if not (path.parent / "exit.json").exists():
            with contextlib.suppress(FileNotFoundError):
                runs.append(json.loads(path.read_text()))
    if not runs:
        return
    chosen = rng.choice(runs)
    who = rng.choice(("shim", "worker"))
    pid = chosen["pid"] if who == "shim" else rng.choice(chosen["pids"])
    if _is_of(plan, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            found.hurt[who] += 1


# -- processes -----------------------------------------------------------------------------------------------


def _is_of(plan: Plan, pid: int) -> bool:
    """Whether a process belongs to a plan: its folder stands in the command or the environment."""
    try:
        about = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(plan.root) + b"/" in about


def processes_of(plan: Plan) -> list[int]:
    """Return all shims and workers of a plan."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _is_of(plan, pid)]


def end_everything(plan: Plan) -> None:
    """Leave no process behind, whatever went wrong."""
    while pids := processes_of(plan):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
