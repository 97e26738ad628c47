"""Controllers that are killed at any instant, over real processes; and what must hold at the end.

A harness with everything imported forks controllers, so that a life takes a fraction of a second. A kill
counts once the controller said that it is ready, or died at a point that has a name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import text

from trainyard.core.validate import validate
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.controller import Controller
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

JOB = Path(__file__).with_name("counting_job.py")
LABELS = (
    "before commit",
    "after commit",
    "before act",
    "after act",
    "before spawn",
    "after spawn",
    "recovered",
    "reconciled",
)
POLICIES = ("las", "srtf", "fifo", "srtf+doubling", "las+drf", "tiresias")
SETTINGS = Settings(
    grace_s=5.0,
    kill_s=1.0,
    observe_s=0.2,
    again_s=0.5,
    act_s=10.0,
    back_off_s=0.05,
    most_back_off_s=0.2,
    most_idle=10_000,  # kills by the harness are no fault of the job
    snapshot_events=40,
)
LONGEST_S = 20.0  # of a life without news


@dataclass
class Plan:
    """What one store goes through."""

    seed: int
    root: Path
    url: str
    kills: int
    jobs: int = 8
    steps: int = 60
    every: int = 10
    step_s: float = 0.01
    broken: str = ""  # which protocol, if one is broken on purpose
    settings: Settings = SETTINGS

    @property
    def cluster(self) -> Cluster:
        """Three pretended nodes of two GPUs."""
        return Cluster("kills", tuple(Node(f"n{i}", "GPU", 2, 6.0, 8.0) for i in range(3)))


@dataclass
class Found:
    """What a harness did, and what was wrong afterwards."""

    kills: Counter[str] = field(default_factory=Counter)  # by where
    lives: int = 0
    wrong: list[str] = field(default_factory=list)
    repeated: int = 0  # steps
    events: int = 0


# -- a controller's life, in a process of its own ------------------------------------------------------------


def wanted_jobs(plan: Plan) -> list[Job]:
    """The jobs of a plan: rigid and elastic ones."""
    rng = Random(plan.seed)
    jobs = []
    for i in range(plan.jobs):
        most = rng.choice((1, 1, 2, 4))
        elastic = {"min_gpus": 1, "max_gpus": most} if most > 1 else {}
        jobs.append(Job(str(i + 1), 0.0, 1, samples=None, terms=Terms(retries=1000), **elastic))
    return jobs


def live(plan: Plan, at: Callable[[str], None], ready: Callable[[], None]) -> None:
    """Be a controller until all jobs are over."""
    asyncio.run(_live(plan, at, ready))


async def _live(plan: Plan, at: Callable[[str], None], ready: Callable[[], None]) -> None:
    store = Store(connect(plan.url))
    policy = POLICIES[plan.seed % len(POLICIES)]
    options = Options(plan.cluster, policy, settings=plan.settings)
    made = make_controller(store, options, (plan.cluster, policy), at=at)
    controller, opened, starts, _ = made
    backend = LocalBackend(plan.root, store.store_id, store.epoch, plan.settings, at=at)
    break_protocol(plan.broken, controller, backend)
    at_work = Live(controller, backend, at)
    async with at_work.running(opened, starts):
        ready()
        for job in wanted_jobs(plan):
            await at_work.ask(lambda c, job=job: hand_in(c, plan, job))
        while not at_work.stopped.is_set():
            over = [view["state"] for view in controller.published.jobs()]
            if len(over) == plan.jobs and set(over) <= {"done", "failed", "cancelled"}:
                break
            await asyncio.sleep(0.02)
        await at_work.write_snapshot()
        validate(controller.yard)
    if at_work.shell.failure is not None:
        raise at_work.shell.failure
    backend.close()
    store.close()


def hand_in(controller: Controller, plan: Plan, job: Job) -> None:
    """Submit a job once, as a client does that repeats its request."""
    with controller.store.engine.connect() as connection:
        if reading.job_of_request(connection, job.job_id) is not None:
            return
    now = controller.clock.now()
    argv = [sys.executable, "-I", "-S", str(JOB), *map(str, (plan.steps, plan.every, plan.step_s))]
    spec = {"command": argv, "workdir": "/", "env": {}, "grace_s": None}
    job = Job(job.job_id, now, job.gpus, min_gpus=job.min_gpus, max_gpus=job.max_gpus, terms=job.terms)
    controller.submit(job, Info(int(job.job_id), "count", "tester", spec, now), job.job_id)


def break_protocol(how: str, controller: Controller, backend: LocalBackend) -> None:
    """Make one of the mistakes that the tests have to notice."""
    if how == "act before commit":
        commit = controller.commit

        def act_first() -> None:
            intents, controller.ledger.intents = controller.ledger.intents, []
            if intents:
                controller.outbox(intents)
                time.sleep(0.02)
            commit()

        controller.commit = act_first  # type: ignore[method-assign]
    elif how == "no single start":
        source = backend._shim.read_bytes()
        assert source
        backend._shim = without_lock(backend._shim)
    elif how == "downtime unseen":
        controller.acted.clear()


def without_lock(archive: Path) -> Path:
    """A shim that starts its workers even if another one did."""
    import zipfile

    broken = archive.with_name("broken.pyz")
    if not broken.exists():
        with zipfile.ZipFile(archive) as good, zipfile.ZipFile(broken, "w") as bad:
            for name in good.namelist():
                text = good.read(name).decode()
                text = text.replace(
                    'if lock is None or os.path.exists("exit.json") or not begins():', "if False:"
                )
                text = text.replace("assert alive is not None", "alive = alive or 0")
                bad.writestr(name, text)
    return broken


# -- the harness ---------------------------------------------------------------------------------------------


def run(plan: Plan) -> Found:
    """Let controllers live and die until all jobs are over, then look at what they left."""
    rng, found = Random(plan.seed), Found()
    plan.root.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60.0 + 5.0 * plan.kills
    while time.monotonic() < until:
        left = plan.kills - found.kills.total()
        kind = rng.choice(("label", "random")) if left > 0 else "none"
        if _one_life(plan, rng, kind, found):
            break
        if found.lives > 20 * (plan.kills + 10):
            break
    look_at(plan, found)
    end_everything(plan)
    return found


def _one_life(plan: Plan, rng: Random, kind: str, found: Found) -> bool:
    """Fork a controller and kill it, or let it live; whether it ended by itself, all jobs over."""
    found.lives += 1
    label, nth = rng.choice(LABELS), 1 + int(rng.expovariate(0.5))
    after_s = rng.uniform(0.0, 0.5)
    receives, sends = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receives)
        _child(plan, sends, (label, nth) if kind == "label" else None)
    os.close(sends)
    try:
        return _watch(plan, pid, receives, kind, after_s, label, found, rng)
    finally:
        os.close(receives)


def _child(plan: Plan, sends: int, dies: tuple[str, int] | None) -> None:
    counts: Counter[str] = Counter()

    def at(label: str) -> None:
        counts[label] += 1
        if dies is not None and label == dies[0] and counts[label] == dies[1]:
            os.write(sends, b"K")
            os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        live(plan, at, lambda: os.write(sends, b"R"))
        os.write(sends, b"E")
        code = 0
    except BaseException as error:
        import traceback

        traceback.print_exception(error)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _watch(
    plan: Plan, pid: int, receives: int, kind: str, after_s: float, label: str, found: Found, rng: Random
) -> bool:
    """Follow a life to its end."""
    said, kill_at, until = b"", None, time.monotonic() + LONGEST_S + (60.0 if kind == "none" else 0.0)
    while True:
        now = time.monotonic()
        if kill_at is not None and now >= kill_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            found.kills["random instant"] += 1
            return False
        ready, _, _ = select.select([receives], [], [], 0.05 if kill_at is None else max(kill_at - now, 0))
        if ready:
            news = os.read(receives, 100)
            said += news
            if not news:
                break
            if b"R" in news and kind != "none":
                # A point that is not reached within a second is given up.
                kill_at = time.monotonic() + (after_s if kind == "random" else 1.0)
                if rng.random() < 0.3:
                    _kill_one_of_the_job(plan, rng, found)
        if now > until:
            os.kill(pid, signal.SIGKILL)
            break
    os.waitpid(pid, 0)
    if b"K" in said:
        found.kills[label] += 1
    elif b"E" not in said:
        found.wrong.append(f"a controller died by itself or hung in life {found.lives} ({said!r})")
    return b"E" in said


def _kill_one_of_the_job(plan: Plan, rng: Random, found: Found) -> None:
    """Kill a shim or a worker."""
    runs = [
        json.loads(path.read_text())
        for path in plan.root.glob("jobs/*/*/*/shim.json")
        if not (path.parent / "exit.json").exists()
    ]
    if not runs:
        return
    chosen = rng.choice(runs)
    who = rng.choice(("shim", "worker"))
    pid = chosen["pid"] if who == "shim" else rng.choice(chosen["pids"])
    if str(plan.root).encode() in _environment_or_command(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            found.kills[who] += 1
        except ProcessLookupError:
            pass


def _environment_or_command(pid: int) -> bytes:
    """What tells that a process is ours."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def end_everything(plan: Plan) -> None:
    """Leave no process behind, whatever went wrong."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            about = _environment_or_command(int(entry))
            if str(plan.root).encode() in about:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry), signal.SIGKILL)


# -- what must hold ------------------------------------------------------------------------------------------


def look_at(plan: Plan, found: Found) -> None:
    """See that every job ended once, that nothing was lost and nothing done twice."""
    engine = connect(plan.url)
    with engine.connect() as connection:
        rows = {row["job_id"]: row for row in connection.execute(text("SELECT * FROM jobs")).mappings()}
        for number in range(1, plan.jobs + 1):
            job_id = str(number)
            row = rows.get(job_id)
            if row is None or row["state"] != "done":
                found.wrong.append(f"job {job_id} is {row and row['state']}, not done")
            ends = [
                s
                for s in reading.story_of(connection, job_id)
                if s["state"] in ("done", "failed", "cancelled")
            ]
            if len(ends) != 1:
                found.wrong.append(f"job {job_id} ended {len(ends)} times")
            _look_at_history(plan, job_id, reading.attempts_of(connection, job_id), found)
        _look_at_store(connection, found)
    engine.dispose()


def _look_at_store(connection: Any, found: Found) -> None:
    numbers = [seq for (seq,) in connection.execute(text("SELECT seq FROM events ORDER BY seq"))]
    if numbers != list(range(1, len(numbers) + 1)):
        found.wrong.append("the log has gaps")
    found.events = len(numbers)
    left = reading.open_intents(connection)
    if left:
        found.wrong.append(f"{len(left)} intents are open, such as {dict(left[0])}")
    try:
        check_log(connection, Decider())
    except Exception as error:
        found.wrong.append(f"the log does not replay: {str(error)[:600]}")


def _look_at_history(plan: Plan, job_id: str, attempts: list[Any], found: Found) -> None:
    """Each attempt counts up to the checkpoint that the next one began from: every step exactly once."""
    path = plan.root / "jobs" / job_id / "checkpoint" / "history"
    if not path.exists():
        found.wrong.append(f"job {job_id} never ran")
        return
    runs: dict[int, list[str]] = {}
    for line in path.read_text().splitlines():
        attempt, _, what = line.partition(" ")
        runs.setdefault(int(attempt), []).append(what)
    said = [(attempt, [w.split() for w in whats]) for attempt, whats in runs.items()]
    if any(words[0] == "TWICE" for _, whats in said for words in whats):
        found.wrong.append(f"job {job_id} ran twice at once")
    said = [(a, [w for w in whats if w[0] != "TWICE"]) for a, whats in said]
    for attempt, whats in said:
        if sum(words[0] == "from" for words in whats) > 1:
            found.wrong.append(f"attempt {attempt} of job {job_id} was started twice")
    known = {row["attempt"]: row for row in attempts}
    history: list[int] = []
    for (attempt, whats), after in zip(said, [*said[1:], None], strict=True):
        steps = [int(words[1]) for words in whats if words[0] == "step"]
        stop = int(after[1][0][1]) if after is not None else plan.steps
        history += [step for step in steps if step <= stop]
        lost = len([step for step in steps if step > stop])
        found.repeated += lost
        code = known[attempt]["code"] if attempt in known else "unknown to the store"
        if lost and code in ("saved", ""):
            found.wrong.append(f"attempt {attempt} of job {job_id} saved, but {lost} steps were repeated")
        if lost > plan.every:
            found.wrong.append(f"{lost} steps of job {job_id} were repeated after attempt {attempt} ({code})")
    if history != list(range(1, plan.steps + 1)):
        found.wrong.append(f"job {job_id} did {history}")
