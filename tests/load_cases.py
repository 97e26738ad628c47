"""Stores as large as a busy site has them, made by a real controller, and recovered by another one."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from random import Random

from trainyard.core.events import JobFinished, JobStarted, JobStopped, ProgressReported
from trainyard.live.backends.base import RunKey
from trainyard.live.clock import SetClock
from trainyard.live.controller import Controller
from trainyard.live.daemon import Options, make_controller
from trainyard.live.intents import Intent
from trainyard.live.settings import Settings
from trainyard.live.store import reading
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.views import Info
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.terms import Terms
from trainyard.model.zoo import ZOO

CLUSTER = uniform_cluster(25, 8)
POLICY = "srtf"
SPEC: dict[str, object] = {
    "command": ["python", "train.py"],
    "workdir": "/srv/jobs",
    "env": {},
    "grace_s": None,
}
WAITING = 1000  # jobs, at the end
MODELS = ("", "resnet18", "resnet50", "bert-base", "vgg16")
AT_ONCE = 40  # jobs that report in one step


def _controller(url: str, clock: SetClock) -> Controller:
    store = Store(connect(url))
    options = Options(CLUSTER, POLICY, settings=Settings())
    made = make_controller(store, options, (CLUSTER, POLICY), lambda _: clock)
    made[0].outbox = lambda intents: None
    return made[0]


def _job(number: int, now: float, random: Random) -> Job:
    model = random.choice(MODELS)
    return Job(
        str(number),
        now,
        random.choice((1, 1, 1, 2)),
        None if not model else random.expovariate(1 / 4000.0) + 60.0,
        model=model,
        profile=ZOO[model].profile if model else None,
        terms=Terms(retries=2),
    )


class Filling:
    """Leads a controller through a busy life until its store is large; one step is one transaction."""

    def __init__(self, url: str, jobs: int, events: int) -> None:
        self.clock, self.random = SetClock(1e9), Random(1)
        self.controller = _controller(url, self.clock)
        self.controller.outbox = self._carry_out
        self.jobs, self.events = jobs, events
        self.reports = max(round(events / jobs - 3.5), 1)  # of every job; it comes, starts and ends, too
        self.running: dict[RunKey, int] = {}  # with the number of its reports

    def fill(self) -> str:
        """Fill the store; say what is in it."""
        c = self.controller
        while not self._full():
            self.clock.now_s += 5.0
            self._come()
            self._go_on()
            c.decide()
            c.commit()
        c.commit()
        c.store.close()
        tail, waiting = c.ledger.seq - c.snapshot_seq, len(c.yard.waiting)
        sizes = f"{c.number:,} jobs, {c.ledger.seq:,} events, {tail:,} of them after the last snapshot"
        return f"{sizes}; {len(self.running)} run, {waiting:,} wait, by {POLICY}"

    def _full(self) -> bool:
        """Whether all is there, and the next snapshot is near: then there is most to replay."""
        c = self.controller
        near = c.ledger.seq - c.snapshot_seq > c.settings.snapshot_events - 2 * AT_ONCE
        return near and c.number >= self.jobs and c.ledger.seq >= self.events

    def _come(self) -> None:
        """New jobs come as long as there are any and not too many wait."""
        c = self.controller
        while c.number < self.jobs and len(c.yard.waiting) < WAITING:
            number, now = c.number + 1, self.clock.now_s
            c.submit(_job(number, now, self.random), Info(number, "train", "ann", SPEC, now))

    def _go_on(self) -> None:
        """Some report; whoever did so often enough is done, until no new jobs come."""
        c, now = self.controller, self.clock.now_s
        for key in self.random.sample(sorted(self.running), min(len(self.running), AT_ONCE)):
            said = self.running[key] = self.running[key] + 1
            if said > self.reports and c.number < self.jobs:
                c.tell(JobFinished(now, key.job_id, attempt=key.attempt), "backend")
                del self.running[key]
                continue
            record = c.yard.find(key.job_id)
            assert record is not None
            c.tell(ProgressReported(now, key.job_id, record.done_at(now), attempt=key.attempt), "backend")

    def _carry_out(self, intents: Sequence[Intent]) -> None:
        """Do what was committed, and see it at once."""
        c, now = self.controller, self.clock.now_s
        c.mark_done(intents, 0.0)
        for intent in intents:
            if intent.kind == "start":
                self.running[intent.key] = 0
                c.tell(JobStarted(now, *intent.key), "backend")
            elif intent.kind == "stop":
                self.running.pop(intent.key, None)
                c.tell(JobStopped(now, *intent.key, code="saved", exit_code=75), "backend")


def fill(url: str, jobs: int, events: int) -> str:
    """Make a store with so many jobs and events; say what is in it."""
    return Filling(url, jobs, events).fill()


def recover(url: str) -> int:
    """Come back, show readers everything, decide and commit; return the number of that event."""
    clock = SetClock(2e9)
    controller = _controller(url, clock)
    controller.publish_all()
    controller.decide()
    controller.commit()
    controller.store.close()
    return controller.ledger.seq


def read_plainly(url: str) -> int:
    """Read what recovery has to read, and parse it; return how many events that were."""
    engine = connect(url)
    with engine.connect() as connection:
        last = reading.latest_snapshot(connection)
        assert last is not None
        read = [json.loads(row["record"]) for row in reading.events_after(connection, last.seq)]
        for row in reading.active_jobs(connection):
            json.loads(row["spec"])
    engine.dispose()
    return len(read)


def submissions(url: str, count: int) -> Iterator[float]:
    """Hand in jobs, each committed by itself; yield how long each commit took."""
    clock, random = SetClock(1e9), Random(1)
    controller = _controller(url, clock)
    for number in range(1, count + 1):
        job = _job(number, clock.now_s, random)
        controller.submit(job, Info(number, "train", "ann", SPEC, clock.now_s), f"key {number}")
        began = time.perf_counter()
        controller.commit()
        yield time.perf_counter() - began
    controller.store.close()


def write_plainly(path: str, count: int, size: int) -> Iterator[float]:
    """The same with nothing but sqlite3 and one table; yield how long each commit took."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE rows (n INTEGER PRIMARY KEY, text TEXT)")
    for n in range(count):
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (n, "x" * size))
        connection.execute("COMMIT")
        yield time.perf_counter() - began
    connection.close()
