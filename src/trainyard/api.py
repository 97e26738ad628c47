"""The Python API: the commands, as functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Unpack

from trainyard.core.restore import answer
from trainyard.files.cluster import load_cluster
from trainyard.files.job_check import check_jobs
from trainyard.files.jobs import load_jobs as _load_jobs
from trainyard.files.profiles import load_profiles
from trainyard.files.snapshot import SnapshotSpec, load_snapshot
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.rules import RuleOptions, Rules
from trainyard.model.zoo import ZOO
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.sim.parallel import run_all
from trainyard.sim.recorder import TimedPolicy
from trainyard.sim.result import Result

__all__ = ["compare", "load_cluster", "load_jobs", "plan", "simulate"]

AnyPath = str | os.PathLike[str]


def load_jobs(path: AnyPath, profiles: AnyPath | None = None, cluster: Cluster | None = None) -> list[Job]:
    """Read a jobs file; models are looked up in a profiles file, then in the zoo; all must fit a cluster."""
    return _load_jobs(path, known_models(profiles), cluster)


def simulate(
    cluster: Cluster | AnyPath,
    jobs: Sequence[Job] | AnyPath,
    policy: Policy | str = "fifo",
    *,
    failures: Iterable[Failure] = (),
    **rules: Unpack[RuleOptions],
) -> Result:
    """Run one policy over the jobs, by the rules given by name, and return what became of them."""
    cluster, jobs = _inputs(cluster, jobs)
    return Simulator(cluster, jobs, _policy(policy), Rules(**rules), failures).run()


def compare(
    cluster: Cluster | AnyPath,
    jobs: Sequence[Job] | AnyPath,
    policies: Sequence[Policy | str],
    *,
    failures: Iterable[Failure] = (),
    **rules: Unpack[RuleOptions],
) -> list[Result]:
    """Run several policies over the same jobs, in parallel; results come in the order of the policies."""
    cluster, jobs = _inputs(cluster, jobs)
    return run_all(cluster, jobs, [_policy(p) for p in policies], Rules(**rules), failures)


def plan(snapshot: SnapshotSpec | AnyPath, policy: Policy | str = "fifo") -> dict[str, object]:
    """Take one decision on a snapshot and return it as `plan --json` prints it; nothing is executed."""
    spec = snapshot if isinstance(snapshot, SnapshotSpec) else load_snapshot(snapshot, known_models())
    chosen = _policy(policy)
    timed = TimedPolicy(chosen, explain=True)
    found = answer(spec, timed.decide)
    more: dict[str, object] = {"notes": dict(found.notes)} if found.notes else {}
    if found.estimates:
        more["estimates"] = found.estimates
    return {"plan": found.plan, "waiting": found.waiting, "decision_ms": timed.spent_s[-1] * 1e3, **more}


def _inputs(cluster: Cluster | AnyPath, jobs: Sequence[Job] | AnyPath) -> tuple[Cluster, Sequence[Job]]:
    known = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
    if isinstance(jobs, (str, os.PathLike)):
        return known, load_jobs(jobs, cluster=known)
    check_jobs(jobs, known, "jobs")
    return known, jobs


def known_models(profiles: AnyPath | None = None) -> dict[str, Profile]:
    """Return the models that jobs may name: those of a profiles file, and those of the zoo."""
    zoo = {name: entry.profile for name, entry in ZOO.items()}
    return zoo | (load_profiles(profiles) if profiles is not None else {})


def _policy(policy: Policy | str) -> Policy:
    return parse_policy(policy) if isinstance(policy, str) else policy
