"""SMD online: jobs with parameter servers arrive one by one at a cluster, and all size stages serve them.

The paper stops at one interval. Here its problem is solved again every ten minutes, for the jobs that are
there then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.report.measures import number
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.smd.figures import draw_online
from trainyard.sim.clock import Simulator

NODES, GPUS = 8, 8
ROUND_S = 600.0
PATIENCE = 4.0  # a job is late after so many times its run time as requested
JOBS, MEAN_H = 120, 2.0
LOADS = (0.4, 0.8, 1.2)  # GPU-time asked for by GPU-time there is
FULL_SEEDS, QUICK_SEEDS = 5, 1
POLICIES = {
    "fixed": "fifo",
    "DRF": "fifo+drf",
    "Optimus": "fifo+optimus",
    "doubling": "fifo+doubling",
    "SMD": "srtf+smd",
    "SMD, charged for use": "srtf+smd(charge=used)",
    "SMD, utility 1/time": "srtf+smd(charge=used,utility=inverse)",
}


@dataclass(frozen=True, slots=True)
class Served:
    """One stream of jobs under one policy."""

    policy: str
    load: float
    seed: int

    def carry_out(self) -> Outcome:
        """Simulate."""
        cluster, jobs = uniform_cluster(NODES, GPUS), stream(self.load, self.seed)
        result = Simulator(cluster, jobs, parse_policy(self.policy), Rules(round_s=ROUND_S)).run()
        outcomes, summary = result.outcomes, result.summary()
        in_time = outcomes.jct_s <= PATIENCE * outcomes.ideal_s
        return Outcome(
            float(outcomes.jct_s.mean()) / 3600,
            float(in_time.mean()),
            number(summary, "gpu_utilization"),
            number(summary, "restarts"),
        )


class Outcome(NamedTuple):
    """What came of it."""

    jct_h: float
    in_time: float
    gpu_use: float
    restarts: float


def stream(load: float, seed: int) -> list[Job]:
    """Draw jobs with servers, half of them asynchronous, that arrive at random."""
    rng = np.random.default_rng(seed)
    jobs, at = [], 0.0
    gpus = rng.choice([1, 2, 4], JOBS, p=[0.5, 0.3, 0.2])
    hours = rng.exponential(MEAN_H, JOBS) + 0.1
    gap_s = 3600 * float((gpus * hours).mean()) / (load * NODES * GPUS)
    for i in range(JOBS):
        at += float(rng.exponential(gap_s))
        asynchronous = bool(rng.random() < 0.5)
        jobs.append(
            Job(
                f"job-{i}",
                at,
                int(gpus[i]),
                duration_s=3600 * float(hours[i]),
                profile=_profile(rng, asynchronous),
                min_gpus=1,
                max_gpus=int(4 * gpus[i]),
            )
        )
    return jobs


def _profile(rng: np.random.Generator, asynchronous: bool) -> Profile:
    """A model of 30 to 575 MB, as in the paper; the rest so that a worker alone computes most of the time."""
    return Profile(
        batch=64 if asynchronous else 256,
        scaling="weak" if asynchronous else "strong",
        compute=Compute(float(rng.uniform(0.01, 0.1)), {"GPU": float(rng.uniform(0.001, 0.01))}),
        sync=Sync(
            "ps",
            mode="async" if asynchronous else "sync",
            gradient_mb=float(rng.uniform(30, 575)),
            worker_overhead_s=float(rng.uniform(0.0, 0.005)),
            server_overhead_s=float(rng.uniform(0.0, 0.002)),
            async_share=float(rng.uniform(0.2, 1.0)),
        ),
        worker=Demand(1.0, 16.0),
        server=Demand(1.0, 8.0),
    )


def _seeds(quick: bool) -> range:
    return range(QUICK_SEEDS if quick else FULL_SEEDS)


def tasks(quick: bool) -> list[Served]:
    """Every run, the longest first."""
    runs = [Served(p, load, seed) for load in LOADS for p in POLICIES.values() for seed in _seeds(quick)]
    return sorted(runs, key=lambda run: -run.load)


def tables(quick: bool, found: Mapping[Served, Outcome]) -> list[Table]:
    """One table."""
    cells: list[list[Cell]] = []
    for load in LOADS:
        means = {
            name: np.mean([found[Served(policy, load, seed)] for seed in _seeds(quick)], axis=0).tolist()
            for name, policy in POLICIES.items()
        }
        for name, (jct_h, in_time, gpu_use, restarts) in means.items():
            cells.append(
                [load, name, jct_h, means["fixed"][0] / jct_h, 100 * in_time, 100 * gpu_use, restarts / JOBS]
            )
    columns = [
        Heading("load"),
        Heading("size"),
        Heading("avg JCT h", "{:.2f}"),
        Heading("x vs fixed", "{:.2f}x"),
        Heading("in time %", "{:.0f}"),
        Heading("GPU use %", "{:.0f}"),
        Heading("restarts per job", "{:.2f}"),
    ]
    note = (
        f"{JOBS} jobs with parameter servers on {NODES * GPUS} GPUs, decided every {ROUND_S / 60:g} minutes; "
        f"means over {len(_seeds(quick))} seeds. In time: within {PATIENCE:g} times the run time as asked "
        "for. The paper has no such experiment."
    )
    return [Table("online", "Online: average job completion time", columns, cells, note)]


def pictures(tables: Sequence[Table]) -> dict[str, bytes]:
    """Return file name -> PNG."""
    return draw_online(tables[0])
