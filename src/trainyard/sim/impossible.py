"""Why a run is stuck: a job that finds no nodes even alone."""

from __future__ import annotations

from trainyard.core.yard import Yard
from trainyard.model.allocation import Plan
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.policy import Policy
from trainyard.policy.size.drf import Drf
from trainyard.policy.size.fixed import Fixed
from trainyard.state.snapshot import Snapshot


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
