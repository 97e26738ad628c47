"""Workloads of tenants with priorities, sizes and jobs that must not stop, and what must hold for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf

from hypothesis import strategies as st

from conftest import PROFILES
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.result import Result

NAMES = ("", "red", "blue", "green")
SLOW = GpuType("K80", 0.25)


@st.composite
def shared_clusters(draw, one_type: bool = False) -> Cluster:
    """A few nodes, and tenants with guarantees and limits that can be kept."""
    counts = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
    kinds = ["V100"] if one_type else ["V100", "V100", "K80"]
    nodes = tuple(
        Node(f"n{i}", draw(st.sampled_from(kinds)), gpus, 3.0 * gpus, 50.0 * gpus)
        for i, gpus in enumerate(counts)
    )
    left, tenants = sum(counts), {}
    for name in NAMES[1:]:
        guaranteed = draw(st.integers(0, left))
        left -= guaranteed
        limit = draw(st.one_of(st.none(), st.integers(max(guaranteed, 1), sum(counts))))
        tenants[name] = Tenant(name, guaranteed, limit, draw(st.sampled_from([1.0, 2.0])))
    return Cluster("shared", nodes, {"K80": SLOW}, tenants if draw(st.integers(0, 4)) else {})


@st.composite
def shared_jobs(draw, cluster: Cluster, plain: bool = False) -> list[Job]:
    """Jobs of these tenants, each of which could run."""
    jobs = []
    for i in range(draw(st.integers(1, 10))):
        tenant = draw(st.sampled_from(NAMES))
        limit = cluster.tenants[tenant].limit if tenant in cluster.tenants else None
        gpus = draw(st.integers(1, min(cluster.gpus, limit or cluster.gpus, 6)))
        elastic = draw(st.booleans())
        least, most = (
            (draw(st.integers(1, gpus)), gpus + draw(st.integers(0, 4))) if elastic else (gpus, gpus)
        )
        some = draw(st.booleans())
        sizes = {gpus, *draw(st.lists(st.integers(least, most), max_size=3))} if some else ()
        job = Job(
            f"j{i}",
            draw(st.sampled_from([0.0, 0.0, 10.0, 55.5])),
            gpus,
            duration_s=draw(st.sampled_from([7.5, 60.0, 300.0])),
            min_gpus=least if elastic else None,
            max_gpus=most if elastic else None,
            tenant=tenant,
            user=draw(st.sampled_from(["", "ann", "bob"])),
            profile=None if plain else draw(st.sampled_from(PROFILES)),
            checkpoint_s=draw(st.sampled_from([0.0, 20.0, 1e9])),
            priority=draw(st.sampled_from([0, 0, 1, 5])),
            sizes=tuple(sorted(sizes)),
            preemptible=bool(draw(st.integers(0, 3))),
        )
        jobs.append(job if some or draw(st.booleans()) else replace(job, priority=0, preemptible=True))
    return jobs


def obeyed(cluster: Cluster, jobs: list[Job], policy: str, strictly: bool, **rules: float) -> Result:
    """Simulate, and look after every decision whether all rules are kept; strictly: who goes first, too."""
    chosen = parse_policy(policy)
    simulator = Simulator(cluster, jobs, chosen, Rules(**rules))
    yard, decide = simulator.yard, simulator.yard.decide

    def watched(now: float) -> None:
        decide(now)
        validate(yard)
        keep_rules(yard)
        if strictly and chosen.order.preemptive:
            higher_go_first(yard, chosen)
            guarantees_hold(yard, chosen)

    yard.decide = watched
    result = simulator.run()
    for job in jobs:
        if not job.preemptible:
            causes = [change.cause for change in result.story_of(job.job_id)]
            assert not any("preempted" in cause or "workers change" in cause for cause in causes), causes
    return result


def held(yard: Yard) -> Counter[str]:
    """GPUs of every tenant."""
    has = Counter[str]()
    for record in yard.table.records:
        has[record.job.tenant] += record.given
    return has


def keep_rules(yard: Yard) -> None:
    """No limit is exceeded, and every job has a size that it may have."""
    has = held(yard)
    for name, tenant in yard.cluster.tenants.items():
        assert tenant.limit is None or has[name] <= tenant.limit
    for record in yard.table.records:
        assert not record.given or not record.job.sizes or record.given in record.job.sizes


def needs_of(yard: Yard, policy: Policy, job: Job) -> int:
    """Fewest GPUs that a policy gives a job."""
    needs = policy.size.needs(job)
    tenant = yard.cluster.tenants.get(job.tenant)
    if tenant is not None and tenant.limit is not None and needs > tenant.limit:
        needs = job.allowed(tenant.limit)
    return min([size for size in job.sizes if size >= needs], default=needs)


def higher_go_first(yard: Yard, policy: Policy) -> None:
    """No job waits while one of lower priority, that is entitled to nothing, holds what it could use."""
    has, tenants = held(yard), yard.cluster.tenants
    for waits in yard.waiting:
        needs = needs_of(yard, policy, waits.job)
        for runs in yard.table.records:
            lower = runs.given and runs.job.preemptible and runs.job.priority < waits.job.priority
            borrows = runs.job.tenant not in tenants or not tenants[runs.job.tenant].guaranteed
            if lower and borrows and yard.free.total + runs.given >= needs:
                mine = has[waits.job.tenant] - (runs.given if runs.job.tenant == waits.job.tenant else 0)
                limit = tenants[waits.job.tenant].limit if waits.job.tenant in tenants else None
                assert mine + needs > (inf if limit is None else limit), (waits.job_id, runs.job_id)


def guarantees_hold(yard: Yard, policy: Policy) -> None:
    """No job within its tenant's guarantee waits while another tenant keeps borrowed GPUs it could use."""
    has, tenants = held(yard), yard.cluster.tenants
    for waits in yard.waiting:
        mine, needs = tenants.get(waits.job.tenant), needs_of(yard, policy, waits.job)
        if mine is None or has[mine.name] + needs > mine.guaranteed:
            continue
        for runs in yard.table.records:
            other = runs.job.tenant
            promised = tenants[other].guaranteed if other in tenants else 0
            borrowed = other != mine.name and has[other] - runs.given >= promised
            if runs.given and runs.job.preemptible and borrowed:
                assert yard.free.total + runs.given < needs, (waits.job_id, runs.job_id)
