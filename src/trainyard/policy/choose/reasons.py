"""Why does a job wait? One line each, told from the state after a plan."""

from __future__ import annotations

from trainyard.model.job import Job
from trainyard.policy.blame import blaming
from trainyard.policy.policy import Policy
from trainyard.policy.size.fixed import Fixed
from trainyard.state.snapshot import Snapshot


def waiting_reasons(snapshot: Snapshot, policy: Policy) -> dict[str, str]:
    """Return job -> reason for every waiting job, in the order in which the policy would serve them."""
    with blaming(policy):
        ranked = policy.order.rank(snapshot).tolist()
    rows = [row for row in ranked if not snapshot.table.records[row].given]
    jobs = [snapshot.table.jobs[row] for row in rows]
    return {job.job_id: _reason(snapshot, policy, job, place, jobs[0]) for place, job in enumerate(jobs)}


def _reason(snapshot: Snapshot, policy: Policy, job: Job, place: int, head: Job) -> str:
    needs = job.gpus if isinstance(policy.size, Fixed) else job.least_gpus
    kind = f"{job.gpu_type} GPU".strip() + ("s" if needs != 1 else "")
    free = _free(snapshot, job.gpu_type)
    if needs > free:
        return f"needs {needs} {kind}; {free} are free" + (f", and {place} jobs come first" if place else "")
    if place and policy.order.fill == "strict" and not policy.order.preemptive:
        return f"waits behind {head.job_id}: the order is strict"
    if place and policy.order.fill == "easy":
        return f"would delay {head.job_id}, which comes first"
    if policy.size.refusal:
        return policy.size.refusal
    if job.particular or not policy.tune.by_gpus:
        return f"needs {needs} {kind}; {free} are free, but not with the CPUs and memory that it needs"
    return f"needs {needs} {kind}; {free} are free, but not where it could use them"


def _free(snapshot: Snapshot, gpu_type: str) -> int:
    if not gpu_type:
        return snapshot.free.total
    nodes = snapshot.nodes
    return sum(
        gpus for gpus, t in zip(snapshot.free.gpus, nodes.type, strict=True) if nodes.types[t] == gpu_type
    )
