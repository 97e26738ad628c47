"""What does it cost a policy not to know how long jobs take? `make unknown` (or `python bench/unknown.py`).

It runs every stage of the registry, and every preset, with perfect knowledge and with `--unknown-durations`,
on a mixed workload (elastic jobs, CPU-hungry ones, profiles of their own) and on one like Philly's, and
prints a table of average completion times. `docs/unknown.md` has it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from random import Random
from typing import Any

from trainyard.files.cluster import build_cluster
from trainyard.files.job_reading import JobReader
from trainyard.files.position import Position
from trainyard.files.profiles import parse_profile
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import ZOO
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import DEFAULTS, ENTRIES, PRESETS
from trainyard.sim.clock import Simulator
from trainyard.trace.generate import generate
from workloads import CLUSTERS, PROFILES, mixed

GAP_S = 100.0  # between two jobs of the mixed workload, on average
RESTART_S = 30.0
Work = tuple[Cluster, list[Job]]


def main() -> None:
    """Run all, and print the table."""
    parser = argparse.ArgumentParser(description="Compare known with unknown lengths of jobs.")
    parser.add_argument("--seed", type=int, default=1, help="of both workloads")
    parser.add_argument("--mixed", type=int, default=200, help="jobs of the mixed workload")
    parser.add_argument("--philly", type=int, default=600, help="jobs of the workload like Philly's")
    parser.add_argument("--only", help="policies, separated by commas")
    args = parser.parse_args()
    works = [mixed_work(args.mixed, args.seed), philly_work(args.philly, args.seed)]
    print("| policy | mixed: known | unknown | ratio | Philly: known | unknown | ratio |")
    print("|---|---|---|---|---|---|---|")
    for policy in args.only.split(",") if args.only else policies():
        cells = [cell for work in works for cell in compared(policy, *work)]
        print(f"| `{policy}` | {' | '.join(cells)} |", flush=True)


def policies() -> Iterable[str]:
    """Every stage of the registry, beside srtf unless it is an order itself; and the presets."""
    for name, entry in ENTRIES.items():
        if "order" in entry.stages:
            yield name
        elif name not in DEFAULTS.values():
            yield f"srtf+{name}"
    yield from PRESETS


def mixed_work(count: int, seed: int) -> Work:
    """Jobs of all kinds on one GPU type."""
    cluster, draw, at_s = cluster_of("lab"), Random(f"unknown-{seed}"), 0.0
    own = {name: parse_profile(profile, name) for name, profile in PROFILES.items()}
    reader = JobReader({name: entry.profile for name, entry in ZOO.items()} | own)
    jobs: list[Job] = []
    for number in range(count):
        at_s += round(draw.expovariate(1 / GAP_S), 1)
        made: dict[str, Any] = {"job_id": f"mixed-{number}", "arrival_s": at_s, **mixed(draw)}
        jobs.append(reader.read(made, Position("mixed")))
    return cluster, jobs


def philly_work(count: int, seed: int) -> Work:
    """Rigid jobs with the run times and sizes of Philly's."""
    return cluster_of("wide"), generate("philly", count, seed)


def cluster_of(name: str) -> Cluster:
    """Return a cluster of `bench/workloads.py`."""
    entry: Any = {"name": name, **CLUSTERS[name]}
    return build_cluster(entry, Position(name))


def compared(policy: str, cluster: Cluster, jobs: list[Job]) -> list[str]:
    """Run a policy both ways; return the average completion times, in hours, and their ratio."""
    known, unknown = (
        average_jct_s(policy, cluster, jobs, Rules(restart_s=RESTART_S, unknown_durations=hide))
        for hide in (False, True)
    )
    return [f"{known / 3600:.2f} h", f"{unknown / 3600:.2f} h", f"{unknown / known:.2f}"]


def average_jct_s(policy: str, cluster: Cluster, jobs: list[Job], rules: Rules) -> float:
    """Simulate, and return the average completion time."""
    jct_s = Simulator(cluster, jobs, parse_policy(policy), rules).run().outcomes.jct_s
    return math.fsum(jct_s) / len(jobs)


if __name__ == "__main__":
    main()
