"""A decision is a function of the snapshot: of nothing else, and it leaves nothing behind but caches."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest

from conftest import ORDERS, PROFILES
from trainyard.api import known_models
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.core.validate import validate
from trainyard.files.snapshot import load_snapshot
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import ENTRIES
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.state.record import Record

SIZES = ["fixed", "drf", "doubling", "doubling(mode=explore,explore_s=20)", "optimus", "lookahead"]
SIZES += ["optimus(mode=learn,explore_s=20)", "steepest", "smd", "dl2"]
PLACES = ["pack", "pack(consolidate=require)", "spread", "random", "even", "tetris"]
TUNES = ["proportional", "greedy", "tune", "opt"]
JOINT = ["gavel(round_s=30)", "gavel(objective=ftf,round_s=30)", "allox", "sia(round_s=30)", "hadar"]
JOINT += ["market", "market(samples=16)", "market(engine=category)"]

CHAINS = ["+".join(stages) for stages in product(ORDERS, SIZES, PLACES, TUNES)]
ALL = [
    *ORDERS,
    *(f"srtf+{size}" for size in SIZES),
    *(f"las+{place}" for place in PLACES),
    *(f"srtf+{tune}" for tune in TUNES),
    *JOINT,
    *random.Random(1).sample(CHAINS, 10),
]

TYPED = Cluster(
    "types",
    (
        *(Node(f"V100-{i}", "V100", 4, 12.0, 64.0) for i in range(2)),
        *(Node(f"K80-{i}", "K80", 2, 8.0, 32.0) for i in range(2)),
    ),
)
PLAIN = Cluster("plain", tuple(Node(f"V100-{i}", "V100", 4, 12.0, 64.0) for i in range(3)))


def jobs_of(count, seed):
    draw, made, at = random.Random(seed), [], 0
    for i in range(count):
        at += draw.choice((0, 0, 5, 20))
        gpus, profile = draw.choice((1, 1, 2, 4)), draw.choice(PROFILES)
        elastic = {"min_gpus": 1, "max_gpus": 8} if draw.random() < 0.5 else {}
        made.append(
            Job(
                f"j{i}",
                float(at),
                gpus,
                duration_s=draw.choice((30.0, 90.0, 400.0)),
                profile=profile,
                **elastic,
            )
        )
    return made


def state_of(view):
    """Everything that a decision might change by mistake."""
    rows = [
        tuple(getattr(record, name) for name in Record.__slots__ if name not in ("job", "occupies"))
        for record in view.table.records
    ]
    room = view.free
    free = (room.gpus[:], room.cpus[:], room.memory_gb[:], room.levels[:], room.total, room.plain)
    target = {job_id: allocation.shares for job_id, allocation in view.target.items()}
    return rows, free, target, [record.job_id for record in view.waiting], view.version, view.freed, view.said


def plan_of(policy, view):
    changes, wake_s, notes = policy.decide(view)
    return {job_id: a and a.shares for job_id, a in changes.items()}, wake_s, dict(notes)


def through_a_file(view, path):
    """The same snapshot, written and read again."""
    path.write_text(json.dumps(snapshot_record(view)))
    yard, _ = restore(load_snapshot(path, known_models()))
    validate(yard)
    return yard.snapshot(view.now_s)


def moments(cluster, driver, seed, rules):
    """Snapshots of a run, every third one."""
    failures = [Failure(60.0, cluster.nodes[-1].node_id, 50.0)]
    run = Simulator(cluster, jobs_of(14, seed), parse_policy(driver), rules, failures)
    for k in range(30):
        if not run.advance():
            return
        if k % 3 == 0:
            yield run.yard.snapshot(run.now_s)
        run.decide()


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize(("cluster", "seed"), [(PLAIN, 1), (TYPED, 2)], ids=["plain", "types"])
def test_a_decision_is_a_function_of_the_snapshot(policy, cluster, seed, tmp_path):
    chosen, rules = parse_policy(policy), Rules(restart_s=5.0, seed=3)
    seen = 0
    for view in moments(cluster, policy, seed, rules):
        before = state_of(view)
        first = plan_of(chosen, view)
        assert state_of(view) == before
        assert plan_of(chosen, view) == first
        assert plan_of(parse_policy(policy), view) == first
        assert plan_of(chosen, view.fork()) == first
        read = through_a_file(view, tmp_path / "snapshot.json")
        assert plan_of(chosen, read) == first
        view.caches.clear()
        assert plan_of(chosen, view) == first
        seen += 1
    assert seen


@pytest.mark.parametrize(
    "other", ["fifo+spread", "pack(consolidate=require)", "tiresias", "srtf+tune", "market"]
)
def test_looking_with_one_policy_never_changes_what_another_decides(other):
    """pack(consolidate=require) used to block the head for every policy that looked after it."""
    watcher, quiet = parse_policy(other), parse_policy("fifo+spread")
    for view in moments(PLAIN, "fifo+spread", 5, Rules()):
        alone = plan_of(quiet, view.fork())
        plan_of(watcher, view)
        assert plan_of(quiet, view) == alone


def test_every_stage_of_the_registry_is_looked_at():
    named = {term.split("(")[0] for policy in ALL for term in policy.split("+")}
    assert named >= set(ENTRIES)
