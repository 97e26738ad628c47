"""Jobs as users see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from trainyard.core.yard import Yard
from trainyard.model.spoken import spelled
from trainyard.model.terms import NO_TERMS
from trainyard.state.lifecycle import TERMINAL, WITH_PROCESSES, State
from trainyard.state.record import Record

View = dict[str, Any]


@dataclass(slots=True)
class Info:
    """What the core does not know of a job."""

    number: int
    name: str
    user: str
    spec: Mapping[str, Any]
    submitted_s: float
    exit_code: int | None = None  # of its last attempt
    exit_signal: int | None = None
    started_s: float | None = None  # of its latest attempt
    finished_s: float | None = None


def job_view(yard: Yard, record: Record, info: Info, now: float) -> View:
    """Return a job as users see it."""
    job, trouble, held = record.job, record.trouble, record.occupies
    over, runs = record.state in TERMINAL, record.state in WITH_PROCESSES
    code, text = ("", "") if record.state is State.DONE else record.reason()
    known = record.length is None or record.length.known
    terms = job.terms or NO_TERMS
    return {
        "job_id": record.job_id,
        "name": info.name,
        "user": info.user,
        "tenant": job.tenant,
        "state": record.state.value,
        "attempt": record.attempt,
        "gpus": 0 if held is None else held.gpus,
        "servers": 0 if held is None else held.servers,
        "nodes": _nodes(yard, record),
        "min_gpus": job.least_gpus,
        "max_gpus": job.most_gpus,
        "gpu_type": job.gpu_type,
        "priority": job.priority,
        "model": job.model,
        "submitted_s": info.submitted_s,
        "started_s": info.started_s if runs or over else None,
        "finished_s": info.finished_s if over else None,
        "samples_done": record.done_at(now) if record.attempt and _reports(record) else None,
        "samples_total": record.total if known and _tells_samples(record) else None,
        "samples_per_s": record.rate if record.state is State.RUNNING and _reports(record) else None,
        "reported_s": record.reported_s if record.reported_s >= 0 else None,
        "run_s": record.executed_s(now),
        "gpu_s": record.attained_gpu_s(now),
        "exit_code": info.exit_code,
        "exit_signal": info.exit_signal,
        "reason": spelled(text, now),
        "reason_code": code,
        "retries": terms.retries,
        "retries_used": min(0 if trouble is None else trouble.counted, terms.retries),
        "restarts": record.restarts,
        "preemptions": record.preemptions,
        "after": list(terms.after),
        "time_limit_s": terms.time_limit_s if isfinite(terms.time_limit_s) else None,
        "grace_s": info.spec.get("grace_s"),
        "command": info.spec["command"],
        "workdir": info.spec["workdir"],
    }


def _nodes(yard: Yard, record: Record) -> dict[str, dict[str, Any]]:
    """What a job holds on each node, GPUs by index."""
    if record.occupies is None:
        return {}
    taken = {} if yard.seats is None else yard.seats.of.get(record.job_id, {})
    return {
        share.node: {
            "gpus": list(taken.get(share.node, ())),
            "servers": share.servers,
            "cpus": share.cpus,
            "memory_gb": share.memory_gb,
        }
        for share in record.occupies.shares
    }


def _reports(record: Record) -> bool:
    """Whether it is known how far a job is: it says so, or its work is known in samples."""
    return record.reported_s >= 0 or _tells_samples(record)


def _tells_samples(record: Record) -> bool:
    return record.job.samples is not None or record.reported_s >= 0


def node_views(yard: Yard) -> list[View]:
    """Return all nodes as users see them, with what is used of them."""
    used: dict[str, list[float]] = {}
    jobs: dict[str, list[str]] = {}
    for record in _with_processes(yard):
        assert record.occupies is not None
        for share in record.occupies.shares:
            held = used.setdefault(share.node, [0, 0.0, 0.0])
            held[0] += share.gpus
            held[1] += share.cpus
            held[2] += share.memory_gb
            jobs.setdefault(share.node, []).append(record.job_id)
    return [
        {
            "node": node.node_id,
            "state": _condition(yard, node.node_id),
            "gpu_type": node.gpu_type,
            "gpus": node.gpus,
            "gpus_used": int(used.get(node.node_id, [0])[0]),
            "gpus_broken": sorted(yard.conditions.broken.get(node.node_id, ())),
            "cpus": node.cpus,
            "cpus_used": used.get(node.node_id, [0, 0.0])[1],
            "memory_gb": node.memory_gb,
            "memory_gb_used": used.get(node.node_id, [0, 0.0, 0.0])[2],
            "jobs": jobs.get(node.node_id, []),
        }
        for node in yard.cluster.nodes
        if node.node_id not in yard.conditions.away
    ]


def _with_processes(yard: Yard) -> list[Record]:
    """All jobs that occupy anything; most of the others wait, and may be many."""
    active: Iterable[str] = (*yard.records, *yard.parked) if yard.seats is None else yard.seats.of
    found = [record for job_id in active if (record := yard.find(job_id)) is not None]
    return [record for record in found if record.occupies is not None]


def _condition(yard: Yard, node: str) -> str:
    conditions = yard.conditions
    if node in conditions.down:
        return "down"
    if node in conditions.drained:
        return "draining" if node in yard.leaving or _in_use(yard, node) else "drained"
    return "reserved" if node in conditions.closed else "ready"


def _in_use(yard: Yard, node: str) -> bool:
    held = [record.occupies for record in _with_processes(yard)]
    return any(share.node == node for allocation in held if allocation for share in allocation.shares)
