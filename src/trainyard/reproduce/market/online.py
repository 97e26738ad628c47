"""Jobs of the zoo arrive one by one at a cluster of V100, P100 and K80 nodes; many policies serve them.

The alternatives that a user would otherwise pick, with the same speed model, simulator and cost of a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.report.measures import number
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.market.figures import draw_online
from trainyard.reproduce.market.workload import Workload, mixed_cluster, mixed_jobs
from trainyard.sim.clock import Simulator

RESTART_S = 30.0
LOADS = (0.6, 1.0, 1.5)
QUICK_LOADS = (1.0,)
FULL_SEEDS, QUICK_SEEDS = 3, 1
FIRST_SEED = 10  # those before it were used to find good defaults of the market
POLICIES = {
    "market": "market",
    "market gamma=1": "market(gamma=1)",
    "market gamma=0": "market(gamma=0)",
    "market categories": "market(engine=category)",
    "market 64 samples": "market(samples=64)",
    "market fair=1": "market(gamma=1,fair=1)",
    "market beta=0.5": "market(gamma=1,beta=0.5)",
    "gavel": "gavel",
    "gavel makespan": "gavel(objective=makespan)",
    "gavel ftf": "gavel(objective=ftf)",
    "gavel throughput": "gavel(objective=throughput)",
    "allox": "allox",
    "allox alpha=0.3": "allox(alpha=0.3)",
    "sia": "sia",
    "hadar": "hadar",
    "optimus": "srtf+optimus",
    "srtf": "srtf",
    "srsf": "srsf",
}


@dataclass(frozen=True, slots=True)
class Online:
    """One stream of jobs under one policy."""

    policy: str
    workload: Workload

    def carry_out(self) -> Outcome:
        """Simulate."""
        cluster, jobs = mixed_cluster(self.workload.network_gbps), mixed_jobs(self.workload)
        result = Simulator(cluster, jobs, parse_policy(self.policy), Rules(restart_s=RESTART_S)).run()
        summary = result.summary()
        return Outcome(
            number(summary, "avg_jct_s") / 3600,
            number(summary, "p95_jct_s") / 3600,
            number(summary, "jain_index"),
            number(summary, "finish_time_fairness_max"),
            number(summary, "gpu_utilization"),
            number(summary, "restarts") / len(jobs),
            float(result.decision_ms.mean()),
        )


class Outcome(NamedTuple):
    """What came of it."""

    jct_h: float
    p95_h: float
    jain: float
    worst_ratio: float  # completion time by that with an equal share of the cluster
    gpu_use: float
    restarts: float  # of a job
    decision_ms: float


def _seeds(quick: bool) -> range:
    return range(FIRST_SEED, FIRST_SEED + (QUICK_SEEDS if quick else FULL_SEEDS))


def _loads(quick: bool) -> tuple[float, ...]:
    return QUICK_LOADS if quick else LOADS


def tasks(quick: bool) -> list[Online]:
    """Every run, the longest first."""
    runs = [
        Online(policy, Workload(load, seed))
        for load in _loads(quick)
        for policy in POLICIES.values()
        for seed in _seeds(quick)
    ]
    return sorted(runs, key=lambda run: (run.policy != "sia", -run.workload.load))


def tables(quick: bool, found: Mapping[Online, Outcome]) -> list[Table]:
    """One table: means over seeds, and how much longer than the best of the load."""
    cells: list[list[Cell]] = []
    for load in _loads(quick):
        means = {
            name: Outcome(
                *np.mean([found[Online(p, Workload(load, s))] for s in _seeds(quick)], axis=0).tolist()
            )
            for name, p in POLICIES.items()
        }
        best = min(mean.jct_h for mean in means.values())
        for name, mean in means.items():
            cells.append(
                [
                    load,
                    name,
                    mean.jct_h,
                    mean.jct_h / best,
                    mean.p95_h,
                    mean.jain,
                    mean.worst_ratio,
                    100 * mean.gpu_use,
                    mean.restarts,
                    mean.decision_ms,
                ]
            )
    columns = [
        Heading("load"),
        Heading("policy"),
        Heading("avg JCT h", "{:.2f}"),
        Heading("x vs best", "{:.2f}x"),
        Heading("p95 h", "{:.1f}"),
        Heading("Jain", "{:.3f}"),
        Heading("worst ratio", "{:.2f}"),
        Heading("GPU use %", "{:.0f}"),
        Heading("restarts per job", "{:.1f}"),
        Heading("decision ms", "{:.1f}"),
    ]
    jobs, seeds = Workload(0.0, 0).jobs, len(_seeds(quick))
    note = (
        f"{jobs} jobs with the zoo's models on 32 V100, 32 P100 and 32 K80, a restart costs {RESTART_S:g} s; "
        f"means over {seeds} seed{'s' * (seeds > 1)}. Worst ratio: completion time by that of an equal share."
    )
    return [Table("online", "Online: average job completion time on mixed GPU types", columns, cells, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Average completion time and fairness over load."""
    return draw_online(tables[0])
