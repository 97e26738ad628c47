"""What one decision costs as the cluster grows, and how near the best possible it comes."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from trainyard.core.events import JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.tune.synergy.amounts_program import Menus, best_shares
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.synergy import theirs
from trainyard.reproduce.synergy.gains import split_name
from trainyard.reproduce.synergy.runs import policy_name
from trainyard.reproduce.synergy.workload import (
    GPUS_PER_NODE,
    SPLIT,
    Split,
    Workload,
    synergy_cluster,
    synergy_jobs,
)
from trainyard.state.snapshot import Snapshot

JOBS_PER_GPU = 1.5
STAGES = ("", "tune", "opt")
FULL = tuple((gpus, split) for split in (SPLIT, theirs.MIXED) for gpus in (128, 256, 512, 1024, 2048))
QUICK = tuple((gpus, split) for split in (SPLIT, theirs.MIXED) for gpus in (128, 512))


class Decision(NamedTuple):
    """One decision."""

    cpu_s: float
    speed: float  # sum of relative speeds of all that run


def decision_table(sizes: tuple[tuple[int, Split], ...]) -> Table:
    """Take one decision of each kind on an empty cluster with one and a half jobs per GPU."""
    rows: list[list[Cell]] = []
    for gpus, split in sizes:
        snapshot = _snapshot(gpus, split)
        plain, tune, opt = (_decide(snapshot, parse_policy(policy_name("FIFO", stage))) for stage in STAGES)
        known = theirs.DECISION_S.get(gpus, (None, None, None)) if split == SPLIT else (None, None, None)
        bound = _bound(snapshot, gpus)
        quality = [tune.speed / opt.speed, tune.speed / bound, tune.speed / plain.speed]
        rows.append([gpus, split_name(split), plain.cpu_s, tune.cpu_s, opt.cpu_s, *known, *quality])
    columns = [Heading("GPUs"), Heading("mix")]
    columns += [Heading(f"{name} s", "{:.3f}") for name in ("prop", "tune", "opt")]
    columns += [Heading(f"their {name} s", "{:g}") for name in ("prop", "tune", "opt")]
    columns += [Heading(f"tune/{name}", "{:.3f}") for name in ("opt", "bound", "prop")]
    note = (
        "CPU seconds; tune/...: sums of the jobs' speeds. The bound is that of OPT's first program, which "
        "takes the cluster as one big server. Where TUNE gives every job its full demand, OPT solves nothing."
    )
    return Table("decisions", "One decision, by size of the cluster", columns, rows, note)


def _snapshot(gpus: int, split: Split) -> Snapshot:
    yard = Yard(synergy_cluster(gpus // GPUS_PER_NODE), lambda _: Plan(), Rules(restart_s=0.0))
    for job in synergy_jobs(Workload(round(JOBS_PER_GPU * gpus), None, split)):
        yard.handle(JobSubmitted(job.arrival_s, job))
    return yard.snapshot(1.0)


def _decide(snapshot: Snapshot, policy: Policy) -> Decision:
    """Decide twice: only the first time everything has to be loaded and looked up."""
    took = []
    for _ in range(2):
        began = time.process_time()
        plan = policy.decide(snapshot)
        took.append(time.process_time() - began)
    return Decision(
        min(took), sum(_speed(snapshot, *item) for item in plan.allocations(snapshot.target).items())
    )


def _speed(snapshot: Snapshot, job_id: str, allocation: Allocation) -> float:
    """Speed of a job relative to that with its proportional share."""
    job = snapshot.table.of[job_id].job
    return snapshot.speed.rate(job, allocation) / snapshot.speed.reference_rate(job)


def _bound(snapshot: Snapshot, gpus: int) -> float:
    """Largest sum of relative speeds of the first jobs, one per GPU."""
    nodes = snapshot.nodes
    seat = ((nodes.ids[0], 1),)
    ladders = [snapshot.sensitivity.ladder(job, seat) for job in snapshot.table.jobs[:gpus]]
    options = np.zeros((3, gpus, max(len(ladder.cpus) for ladder in ladders)))
    options[2] = -np.inf
    for i, ladder in enumerate(ladders):
        options[:, i, : len(ladder.cpus)] = ladder.cpus, ladder.memory, ladder.speed
    floor = np.array([ladder.speed[0] for ladder in ladders])
    menus = Menus(np.ones(gpus, dtype=np.int64), options[0], options[1], options[2], floor)
    best = best_shares(menus, float(gpus), float(gpus))
    assert best is not None  # proportional shares are always possible
    return best.objective
