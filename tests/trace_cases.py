"""A trace through a real controller and through the simulator: both leave a schedule to compare."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import inf
from random import Random
from typing import NamedTuple

from sqlalchemy import Connection, select

from trainyard.core.events import RulesChanged
from trainyard.live.backends.simulated.backend import SimulatedBackend
from trainyard.live.clock import SetClock
from trainyard.live.daemon import Live, Options, make_controller
from trainyard.live.player import Player
from trainyard.live.settings import Settings
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.store.tables import EVENTS, INTENTS, JOBS
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import ZOO
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.state.lifecycle import State


class Life(NamedTuple):
    """What was done with a job when, and how it ended."""

    steps: tuple[tuple[float, str], ...]  # starts with all shares, and new shares of what runs
    finish_s: float
    state: str


Schedule = Mapping[str, Life]
MODELS = ("alexnet", "resnet18", "resnet50", "vgg16", "bert-base", "transformer")
HALVES = Cluster(
    "halves",
    tuple(Node(f"n{i}", "V100", 4, 12.0 if i % 2 else 24.0, 250.0, 25.0) for i in range(6)),
)


def mixed_jobs(count: int, seed: int, gap_s: float = 240.0) -> list[Job]:
    """Rigid and elastic jobs, many alike or at the same time; some fail or are cancelled."""
    random, arrival_s, jobs = Random(seed), 0.0, []
    for n in range(count):
        arrival_s += random.choice((0.0, 60.0, round(random.expovariate(1 / gap_s), 1)))
        model = random.choice(("", *MODELS))
        most = random.choice((None, 4, 8)) if model else None
        jobs.append(
            Job(
                f"j{n}",
                arrival_s,
                random.choice((1, 1, 2, 4)),
                random.choice((600.0, 1800.0, round(random.expovariate(1 / 3000.0), 1) + 10.0)),
                model=model,
                profile=ZOO[model].profile if model else None,
                min_gpus=None if most is None else 1,
                max_gpus=most,
                status=random.choice(("",) * 8 + ("failed", "cancelled")),
                tenant=random.choice(("red", "blue")),
            )
        )
    return jobs


class World:
    """What outlives controllers: a clock, a backend, a store."""

    def __init__(self, url: str, cluster: Cluster, jobs: Sequence[Job], policy: str, rules: Rules) -> None:
        self.url, self.cluster, self.jobs, self.policy, self.rules = url, cluster, jobs, policy, rules
        self.clock = SetClock(0.0)
        self.backend = SimulatedBackend(cluster, jobs, self.clock, rules)
        self.settings = Settings(snapshot_events=2000)

    def live(self, until_s: float = inf) -> None:
        """Be a controller up to a time, and then be no more."""
        asyncio.run(self._live(until_s))

    async def _live(self, until_s: float) -> None:
        store = Store(connect(self.url))
        options = Options(self.cluster, self.policy, self.rules.round_s, self.rules.seed, self.settings)
        made = make_controller(store, options, (self.cluster, self.policy), lambda _: self.clock)
        controller, opened, starts, _ = made
        costs = {"restart_s": self.rules.restart_s, "start_s": self.rules.start_s}
        if any(getattr(controller.yard.rules, name) != cost for name, cost in costs.items()):
            controller.tell(RulesChanged(self.clock.now(), costs), "trace")
        live = Live(controller, self.backend)
        await live.begin(opened, starts)
        try:
            await Player(live, self.backend, self.clock, self.jobs, self.rules.unknown_durations).play(
                until_s
            )
        finally:
            store.close()

    def schedule(self) -> Schedule:
        """Read from the store what became of all jobs."""
        engine = connect(self.url)
        try:
            with engine.connect() as connection:
                return _read(connection)
        finally:
            engine.dispose()


def _read(connection: Connection) -> Schedule:
    steps: dict[str, list[tuple[float, str]]] = {}
    asked = select(INTENTS, EVENTS.c.time_s).join(EVENTS, INTENTS.c.seq == EVENTS.c.seq)
    for row in connection.execute(asked.order_by(INTENTS.c.seq, INTENTS.c.n)).mappings():
        record = json.loads(row["record"])
        if row["kind"] == "start":
            given = {node: [len(gpus), *more] for node, gpus, *more in record["members"]}
            steps.setdefault(row["job_id"], []).append((row["time_s"], str(given)))
        elif row["kind"] == "retune":
            steps.setdefault(row["job_id"], []).append((row["time_s"], str(record["shares"])))
    return {
        row["job_id"]: Life(tuple(steps.get(row["job_id"], ())), row["finished_s"], row["state"])
        for row in connection.execute(JOBS.select()).mappings()
    }


def simulated(world: World) -> Schedule:
    """Return what the simulator makes of the same trace."""
    result = Simulator(world.cluster, world.jobs, parse_policy(world.policy), world.rules).run()
    steps: dict[str, list[tuple[float, str]]] = {}
    for change in result.story:
        if change.after is State.RUNNING and change.allocation is not None:
            first = 1 if change.before is State.WAITING else 3
            given = {share.node: list(share[first:]) for share in change.allocation.shares}
            steps.setdefault(change.job_id, []).append((change.time_s, str(given)))
    o = result.outcomes
    return {
        job_id: Life(tuple(steps.get(job_id, ())), finish_s, end)
        for job_id, finish_s, end in zip(o.job_id, o.finish_s.tolist(), o.outcome, strict=True)
    }


def differences(ours: Schedule, theirs: Schedule) -> list[str]:
    """Say whose lives are not the same, earliest first."""
    found = []
    for job_id in ours.keys() | theirs.keys():
        one, other = ours.get(job_id), theirs.get(job_id)
        if one is None or other is None:
            found.append((0.0, f"job {job_id} is only in one of them"))
        elif one != other:
            pairs = zip_longest((*one.steps, one[1:]), (*other.steps, other[1:]))
            a, b = next(pair for pair in pairs if pair[0] != pair[1])
            when = min(a[0] or inf, b[0] or inf) if a and b else 0.0  # what never came is last
            found.append((when, f"job {job_id}: {a}, simulated {b}"))
    return [text for _, text in sorted(found)]
