"""A decision is a function of the snapshot: looks at one moment, from all sides, and what must be the same.

Shared by tests/policy/test_purity.py and bench/purity.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from profile_cases import PROFILES
from trainyard.api import known_models
from trainyard.core.events import ProgressReported
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.files.snapshot import load_snapshot
from trainyard.model.allocation import Plan
from trainyard.model.cluster import Cluster, GpuType, Node, NodeTable, Proportional
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import Corrected, Sensitivity, SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.state.lifecycle import State
from trainyard.state.record import ATTRIBUTES
from trainyard.state.snapshot import Snapshot

TYPES = {"V100": GpuType("V100", 1.0), "P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.25)}
# Number of nodes and GPUs of each, by type; node names as a file gives them.
PLAIN = {"V100": (3, 4)}
TYPED = {"V100": (2, 4), "K80": (2, 2)}
SHAPES = [
    PLAIN,
    PLAIN,
    {"V100": (2, 2), "P100": (1, 4)},
    TYPED,
    {"V100": (1, 4), "P100": (2, 2), "K80": (1, 4)},
]

LEFT_ALONE = "the snapshot is left as it was"
AGAIN = "decided again"
FORK = "on a fork"
NEW = "by a new policy of this name"
DROPPED = "with caches dropped"
ANEW = "with all that is derived worked out anew"
FILE = "after a file"
LOOKED = "after another policy looked"
WHY = "asked why"
OTHER = "the other policy, after this one looked"
OTHER_FILE = "the other policy, after a file"
OWNED = "a plan stays as it was made"

When = Callable[[int], bool]  # whether to look at the decision of this number


@dataclass(frozen=True)
class Scene:
    """What a run starts from."""

    cluster: Cluster
    jobs: tuple[Job, ...]
    rules: Rules
    failures: tuple[Failure, ...]


def cluster_of(shape: dict[str, tuple[int, int]]) -> Cluster:
    """Nodes with three CPUs and 16 GB for each GPU."""
    nodes = (
        Node(f"{kind}-{i}", kind, gpus, 3.0 * gpus, 16.0 * gpus)
        for kind, (count, gpus) in shape.items()
        for i in range(count)
    )
    return Cluster("small", tuple(nodes), {kind: TYPES[kind] for kind in shape})


def random_scene(draw: Random, shape: dict[str, tuple[int, int]] | None = None, jobs: int = 14) -> Scene:
    """Jobs of all kinds that wait for each other, and nodes that fail."""
    cluster = cluster_of(draw.choice(SHAPES) if shape is None else shape)
    made, at_s = [], 0.0
    for i in range(jobs):
        at_s += draw.choice((0.0, 0.0, 5.0, 12.5))
        made.append(_random_job(draw, f"j{i}", at_s, cluster))
    rules = Rules(
        round_s=draw.choice((None, None, None, 10.0)),
        restart_s=draw.choice((None, 0.0, 5.0)),
        start_s=draw.choice((0.0, 2.0)),
        seed=draw.randrange(4),
    )
    nodes = [node.node_id for node in cluster.nodes]
    times = sorted(draw.uniform(10.0, 120.0) for _ in range(draw.randrange(4)))
    failures = tuple(Failure(time_s, draw.choice(nodes), draw.uniform(5.0, 60.0)) for time_s in times)
    return Scene(cluster, tuple(made), rules, failures)


def _random_job(draw: Random, name: str, at_s: float, cluster: Cluster) -> Job:
    of_type = _gpus_by_type(cluster)
    gpu_type = draw.choice(("", "", "", *of_type)) if len(of_type) > 1 else ""
    gpus = min(draw.choice((1, 1, 2, 2, 3, 4)), of_type[gpu_type] if gpu_type else 4)
    elastic = draw.random() < 0.5
    profile = draw.choice(PROFILES)
    asks = (profile is None or not profile.apart) and draw.random() < 0.2
    return Job(
        name,
        at_s,
        gpus,
        duration_s=draw.choice((10.0, 30.0, 30.0, 90.0, 400.0)),
        profile=profile,
        min_gpus=1 if elastic else None,
        max_gpus=gpus + draw.choice((1, 4)) if elastic else None,
        gpu_type=gpu_type,
        cpus=draw.choice((1.0, 2.5)) * gpus if asks else None,
        weight=draw.choice((1.0, 1.0, 2.0)),
        checkpoint_s=draw.choice((0.0, 20.0, 1800.0)),
    )


def _gpus_by_type(cluster: Cluster) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in cluster.nodes:
        found[node.gpu_type] = found.get(node.gpu_type, 0) + node.gpus
    return found


def moments(
    scene: Scene, driver: Policy, draw: Random, when: When, most: int
) -> Iterator[tuple[int, Snapshot]]:
    """Yield some of the moments of a run, before their decisions; now and then a job reports."""
    run = Simulator(scene.cluster, scene.jobs, driver, scene.rules, scene.failures)
    for number in range(most):
        if not run.advance():
            return
        _report(run.yard, run.now_s, draw)
        if when(number):
            yield number, run.yard.snapshot(run.now_s)
        run.decide()


def live_moments(
    scene: Scene, driver: Policy, draw: Random, when: When, most: int
) -> Iterator[tuple[int, Snapshot]]:
    """Yield the same of a run in which jobs take their time to stop, and may end at any time."""
    yard, now_s, coming = Yard(scene.cluster, driver.decide, scene.rules), 0.0, list(scene.jobs)
    for number in range(most):
        now_s += draw.choice((0.0, 1.0, 4.5, 12.0))
        for record in yard.table.records[:]:
            if record.state is State.STOPPING and draw.random() < 0.5:
                yard.stopped(now_s, [record])
            elif record.rate > 0 and not record.remaining_at(now_s):
                yard.finish(now_s, record)
        _fail_or_repair(yard, now_s, draw)
        for job in [job for job in coming if job.arrival_s <= now_s]:
            yard.submit(now_s, job)
            coming.remove(job)
        _report(yard, now_s, draw)
        if when(number):
            yield number, yard.snapshot(now_s)
        yard.decide(now_s)
        yard.out.clear()


def _fail_or_repair(yard: Yard, now_s: float, draw: Random) -> None:
    if yard.conditions.down and draw.random() < 0.3:
        yard.node_repaired(now_s, min(yard.conditions.down))
    elif not yard.conditions.down and draw.random() < 0.05:
        yard.node_failed(now_s, draw.choice(yard.nodes.ids))


def _report(yard: Yard, now_s: float, draw: Random) -> None:
    """A running job says how far it is, mostly as far as was thought, and its loss."""
    running = [record for record in yard.table.records if record.rate > 0 and record.since < now_s]
    if running and draw.random() < 0.3:
        record = draw.choice(running)
        left = record.remaining_at(now_s)
        if draw.random() < 0.3:
            left = draw.uniform(left, record.total)
        done, loss = record.total - left, 0.1 + left / record.total
        yard.take_report(record, ProgressReported(now_s, record.job_id, done, loss=loss))


# -- what is compared -------------------------------------------------------------------------------------

Written = tuple[list[tuple[str, Any]], float, dict[str, Any]]


def written(plan: Plan) -> Written:
    """All that a plan says, in its order."""
    changes, wake_s, notes, _ = plan
    return [(job_id, a and a.shares) for job_id, a in changes.items()], wake_s, dict(notes)


def plan_of(policy: Policy, view: Snapshot) -> Written:
    """Decide, and write the plan down."""
    return written(policy.decide(view))


def state_of(view: Snapshot) -> list[Any]:
    """Everything that a decision might change by mistake."""
    table, room = view.table, view.free
    rows = [
        tuple(
            getattr(record, name)
            if name not in ("occupies", "seen", "length")
            else repr(getattr(record, name))
            for name in ATTRIBUTES
        )
        for record in table.records
    ]
    columns = table.data[:, : len(table)].tobytes()
    return [
        rows,
        columns == table.fork().data[:, : len(table)].tobytes(),
        columns,
        (table.gpus, table.particular, table.resized, list(table.of)),
        (room.gpus[:], room.cpus[:], room.memory_gb[:], room.levels[:], room.total, room.plain),
        [(job_id, allocation.shares) for job_id, allocation in view.target.items()],
        [record.job_id for record in view.waiting],
        (view.now_s, view.met, view.version, view.freed, view.placed, view.up_gpus, view.up.tobytes()),
        json.dumps(dict(view.said)),
        _changed_shares(view.nodes),
    ]


def _changed_shares(nodes: NodeTable) -> list[Any]:
    """Plain shares of nodes, made once for all decisions, that are no longer what they were made as."""
    made = Proportional(nodes)
    return [
        (part, a.shares, a.plain)
        for part, a in nodes.proportional.items()
        if (a.shares, a.plain, a.gpus) != (made[part].shares, made[part].plain, made[part].gpus)
    ]


@cache
def models() -> Any:
    """Return the models that files may name."""
    return known_models()


def through_a_file(view: Snapshot, path: Path) -> Snapshot:
    """Write the snapshot, and read it again."""
    path.write_text(json.dumps(snapshot_record(view)))
    yard, _ = restore(load_snapshot(path, models()))
    validate(yard)
    return yard.snapshot(view.now_s)


def with_nothing_derived(view: Snapshot) -> Snapshot:
    """Return a fork whose speeds and ladders are worked out anew."""
    cluster = view.nodes.cluster
    speed = Corrected(SpeedModel(cluster), view.speed.factors)
    return replace(view.fork(), speed=speed, sensitivity=Sensitivity(cluster, speed))


@dataclass
class Looks:
    """Two policies that look at the same moments, and what came out differently."""

    policy: str
    other: str
    file: Path
    compared: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    changes: int = 0  # moments at which something was to be changed
    found: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)  # of both, at every moment
    _plan: tuple[Plan, Written] | None = None

    def __post_init__(self) -> None:
        self.first, self.second = parse_policy(self.policy), parse_policy(self.other)

    def look(self, number: int, view: Snapshot, drop: bool = False) -> None:
        """Decide from all sides; with `drop` the live snapshot loses its caches after that."""
        where, before = f"moment {number} at {view.now_s:.15g} s", state_of(view)
        if self._plan is not None:  # it has been carried out since
            self._compare(OWNED, written(self._plan[0]), self._plan[1], where)
        alone, untouched = plan_of(self.second, view.fork()), view.fork()
        plan = self.first.decide(view)
        expected = written(plan)
        for kind, policy, seen in (
            (AGAIN, self.first, view),
            (FORK, self.first, untouched),
            (NEW, parse_policy(self.policy), view),
            (DROPPED, self.first, replace(view, caches={})),
            (ANEW, self.first, with_nothing_derived(view)),
        ):
            self._compare(kind, plan_of(policy, seen), expected, where)
        self._compare(OTHER, plan_of(self.second, view), alone, where)
        self._compare(WHY, written(self.first.decide(view, explain=True)), expected, where)
        self._compare(LOOKED, plan_of(self.first, view), expected, where)
        self._compare(LEFT_ALONE, state_of(view), before, where)
        read = through_a_file(view, self.file)
        self._compare(FILE, plan_of(self.first, read), expected, where)
        self._compare(OTHER_FILE, plan_of(self.second, read), alone, where)
        self._plan = plan, expected
        self.plans.append(repr((alone, expected)))
        self.decisions += 11
        self.changes += bool(plan.changes)
        if drop:
            view.caches.clear()

    def _compare(self, kind: str, got: Sequence[Any], expected: Sequence[Any], where: str) -> None:
        self.compared[kind] += 1
        if not same(got, expected):
            self.found.append(
                f"{kind}: {self.policy} (the other: {self.other}), {where}: {told(got, expected)}"
            )


def same(one: Any, other: Any) -> bool:
    """Compare to the last bit; arrays in notes too."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def told(got: Sequence[Any], expected: Sequence[Any]) -> str:
    """Show the first part that differs, in short."""
    one, other = next((g, e) for g, e in zip(got, expected, strict=True) if not same(g, e))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return told(one, other)
    return f"{str(one)[:300]} instead of {str(other)[:300]}"


def look_at_a_run(looks: Looks, scene: Scene, draw: Random, live: bool, when: When, most: int = 40) -> int:
    """Let the first policy drive, and look at some of the moments; return how many."""
    seen, run = 0, live_moments if live else moments
    for number, view in run(scene, looks.first, draw, when, most):
        looks.look(number, view, drop=draw.random() < 0.25)
        seen += 1
    return seen
