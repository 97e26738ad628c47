"""Plans against what jobs and tenants may have: allowed sizes, jobs that must not stop, limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


def check_admitted(snapshot: Snapshot, changes: Mapping[str, Allocation | None]) -> None:
    """Raise PlanError if a plan breaks a rule of a job or of a tenant."""
    of, gaining = snapshot.table.of, set[str]()
    for job_id, after in changes.items():
        record = of[job_id]
        _check_job(record, snapshot.target.get(job_id), after)
        if after is not None and after.gpus > record.given:
            gaining.add(record.job.tenant)
    tenants = snapshot.nodes.cluster.tenants
    limited = {name for name in gaining if name in tenants and tenants[name].limit is not None}
    if limited:
        _check_limits(snapshot, changes, limited)


def _check_job(record: Record, before: Allocation | None, after: Allocation | None) -> None:
    job = record.job
    if after is not None and job.sizes and after.gpus not in job.sizes:
        allowed = ", ".join(map(str, job.sizes))
        raise PlanError(f"job {job.job_id} gets {after.gpus} GPUs but may run with {allowed} only")
    if not job.preemptible and before is not None and (after is None or after.seats != before.seats):
        raise PlanError(f"job {job.job_id} must not be stopped or resized once it runs")


def _check_limits(snapshot: Snapshot, changes: Mapping[str, Allocation | None], limited: set[str]) -> None:
    """See that no tenant that gains something ends above its limit."""
    has = Counter[str]()
    for record in snapshot.table.records:
        after = changes.get(record.job_id) if record.job_id in changes else None
        gpus = record.given if record.job_id not in changes else after.gpus if after is not None else 0
        has[record.job.tenant] += gpus
    for name in sorted(limited):
        limit = snapshot.nodes.cluster.tenants[name].limit
        if limit is not None and has[name] > limit:
            raise PlanError(f"tenant {name} gets {has[name]} GPUs but may have {limit}")
