"""Nobody waits for ever: small workloads on odd clusters, and who has to be done at the end of each.

Shared by tests/policy/test_starvation.py and bench/starvation.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from profile_cases import APART, SERVED
from stage_cases import EACH
from trainyard.errors import InputError, TrainyardError
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Demand, Profile
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import PRESETS
from trainyard.sim.clock import Simulator
from trainyard.state.lifecycle import State

ROOT = Path(__file__).resolve().parents[1]
TYPES = {"V100": GpuType("V100", 1.0), "P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.25)}
WORDS = re.compile(r"[a-z0-9]+(?:\([a-z0-9_=,:.-]*\))?(?:\+[a-z0-9]+(?:\([a-z0-9_=,:.-]*\))?)*")
# Those that starved a job before.
STARVED = (
    "srtf+steepest",
    "srtf+optimus(mode=learn)",
    "srtf+smd",
    "srtf+dl2",
    "las+doubling+tune",
    "market(samples=16)",
    "fifo(fill=greedy)+optimus+random+greedy",
    "gavel(round_s=5)",
    "hadar(round_s=5)",
    "sia(round_s=5)",
)
LATE = 50.0  # times as long as first come, first served takes: who is not done then never will be
LATE_S = 20_000.0


@cache
def named_policies() -> tuple[str, ...]:
    """Every stage as tests run it, the presets, and what README, Makefile and documentation name."""
    named = dict.fromkeys([*EACH, *PRESETS, *STARVED])
    for path in [ROOT / "README.md", ROOT / "Makefile", *sorted(ROOT.glob("docs/*.md"))]:
        for found in WORDS.findall(path.read_text()):
            if "+" in found and _is_policy(found):
                named[found] = None
    return tuple(named)


def _is_policy(text: str) -> bool:
    try:
        parse_policy(text)
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class Workload:
    """Jobs that fit, each alone at some size, and how they are run."""

    cluster: Cluster
    jobs: tuple[Job, ...]
    rules: Rules  # with the time at which who is not done never will be


def random_workload(draw: Random) -> Workload:
    """Draw a cluster and jobs; those that fit at no size are left out."""
    cluster = random_cluster(draw)
    some = [random_job(draw, f"j{i}", cluster) for i in range(draw.randint(2, 16))]
    jobs = tuple([job for job in some if fits(job, cluster.nodes)][:8])
    rules = Rules(
        round_s=draw.choice((None, None, None, None, 7.0, 60.0)),
        restart_s=draw.choice((None, 0.0, 0.0, 5.0, 40.0)),
        start_s=draw.choice((0.0, 0.0, 3.0)),
        seed=draw.randrange(4),
    )
    return Workload(cluster, jobs, replace(rules, until_s=_late_s(cluster, jobs)))


def random_cluster(draw: Random) -> Cluster:
    """Unlike nodes: of one GPU each, short of CPUs or of memory, of several types."""
    types = draw.sample(sorted(TYPES), draw.choice((1, 2, 2, 3)))
    single = draw.random() < 0.2
    nodes = []
    for i in range(draw.randint(1, 5)):
        gpus = 1 if single else draw.choice((1, 1, 2, 2, 4, 8))
        cpus = gpus * draw.choice((0.25, 0.25, 1.0, 1.5, 3.0, 6.0))
        memory_gb = gpus * draw.choice((1.0, 2.0, 8.0, 16.0, 60.0))
        nodes.append(Node(f"n{i}", draw.choice(types), gpus, cpus, memory_gb))
    there = {node.gpu_type for node in nodes}
    return Cluster("odd", tuple(nodes), {name: TYPES[name] for name in sorted(there)})


def random_job(draw: Random, name: str, cluster: Cluster) -> Job:
    """A job that may or may not fit."""
    gpus = draw.choice((1, 1, 2, 2, 3, 4, 6, 8))
    elastic = draw.random() < 0.5
    profile = _random_profile(draw)
    asks = (profile is None or not profile.apart) and draw.random() < 0.4
    of_type = draw.choice(("", "", *sorted({node.gpu_type for node in cluster.nodes})))
    return Job(
        name,
        draw.choice((0.0, 0.0, 0.0, 10.0, 25.0, 150.0)),
        gpus,
        duration_s=draw.choice((5.0, 30.0, 90.0, 400.0)),
        profile=profile,
        min_gpus=draw.randint(1, gpus) if elastic else None,
        max_gpus=gpus + draw.choice((0, 1, 4)) if elastic else None,
        gpu_type=of_type if draw.random() < 0.3 else "",
        cpus=draw.choice((0.25, 1.0, 2.0, 6.0)) * gpus if asks else None,
        memory_gb=draw.choice((1.0, 8.0, 30.0)) * gpus if asks and draw.random() < 0.5 else None,
        weight=draw.choice((1.0, 1.0, 3.0)),
    )


def _random_profile(draw: Random) -> Profile | None:
    profile = draw.choice((None, None, zoo_profile("resnet50"), SERVED, APART, APART))
    if profile is APART:
        worker = Demand(draw.choice((0.25, 1.0, 3.0)), draw.choice((1.0, 2.0, 8.0)))
        server = Demand(draw.choice((0.25, 0.5, 1.0, 3.0)), draw.choice((0.5, 2.0, 8.0)))
        return replace(APART, worker=worker, server=server)
    return profile


def fits(job: Job, nodes: Sequence[Node]) -> bool:
    """Whether the job finds room on the empty cluster with its fewest workers, and one server if it has any.

    All ways to share the workers out over the nodes are tried, with the server on each of them.
    """
    serves = job.profile is not None and job.profile.apart and job.profile.server is not None
    return _fits(job, nodes, job.least_gpus, int(serves))


def _fits(job: Job, nodes: Sequence[Node], workers: int, servers: int) -> bool:
    if not workers and not servers:
        return True
    if not nodes:
        return False
    node, rest = nodes[0], nodes[1:]
    most = min(workers, node.gpus) if job.gpu_type in ("", node.gpu_type) else 0
    return any(
        _holds(node, job.need(here, with_them)) and _fits(job, rest, workers - here, servers - with_them)
        for with_them in range(servers, -1, -1)
        for here in range(most, -1, -1)
    )


def _holds(node: Node, need: tuple[float, float]) -> bool:
    return need[0] <= node.cpus + 1e-9 and need[1] <= node.memory_gb + 1e-9


def failure(policy: str, work: Workload) -> str:
    """Run a workload; say which of its jobs are not done at the end, or what else went wrong, if anything."""
    try:
        result = Simulator(work.cluster, work.jobs, parse_policy(policy), work.rules).run()
    except TrainyardError as error:
        return str(error)
    undone = [job.job_id for job in work.jobs if result.story_of(job.job_id)[-1].after is not State.DONE]
    if not undone:
        return ""
    restarts = result.summary()["restarts"]
    return f"{', '.join(undone)} not done after {work.rules.until_s:,.0f} s, {restarts} restarts"


def _late_s(cluster: Cluster, jobs: Sequence[Job]) -> float:
    """When everybody has to be done: long after jobs that run one at a time, at their smallest, would be."""
    one_by_one = 0.0
    for job in jobs:
        alone = Simulator(cluster, [replace(job, arrival_s=0.0)], parse_policy("srtf+drf"))
        with suppress(TrainyardError):  # which the policies will show
            one_by_one += float(alone.run().outcomes.jct_s[0])
    return math.ceil(max((job.arrival_s for job in jobs), default=0.0) + LATE * one_by_one + LATE_S)
