"""Which job can never run, and by which limit? Said before a run if that is sure, else when it is stuck."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.files.job_check import JobCheck
from trainyard.model.allocation import Plan
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.policy import Policy
from trainyard.policy.size.drf import Drf
from trainyard.policy.size.fixed import Fixed
from trainyard.state.snapshot import Snapshot


def check_possible(cluster: Cluster, jobs: Sequence[Job], policy: Policy) -> None:
    """Refuse the first job to which the policy would have to give fewer GPUs than it ever does."""
    check, needs = JobCheck(cluster), policy.size.needs
    for job in jobs:
        if job.least_gpus < job.gpus and (gpus := needs(job)) > job.least_gpus:
            try:
                check(job, gpus=gpus)
            except InputError as error:
                what = f"policy {policy.name} gives it no fewer than {gpus} GPUs"
                raise InputError(f"{error}, or take another policy: {what}") from None


def why_never(cluster: Cluster, job: Job, policy: Policy, rules: Rules) -> str:
    """Say why a job finds no nodes even with the whole cluster to itself; nothing if it does.

    Order and size are plain ones: what starves a job that could run is the policy, not the input.
    """
    if not isinstance(policy, Policy):
        return ""
    size = Fixed() if policy.size.whole_gangs else Drf()
    plain = Policy(policy.name, Fifo(), size, policy.place, policy.tune)
    told: list[str] = []

    def decide(snapshot: Snapshot) -> Plan:
        plan = plain.decide(snapshot, explain=True)
        told.extend(str(refusal) for refusal in plan.why.values())
        return plan

    yard = Yard(cluster, decide, rules)
    yard.submit(job.arrival_s, job)
    yard.decide(job.arrival_s)
    return told[0] if told else ""
