"""A snapshot as data for a file, to the last bit: `trainyard plan` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from trainyard.files.cluster import cluster_record, names_of
from trainyard.files.jobs import job_record
from trainyard.files.profiles import profile_record
from trainyard.model.allocation import Allocation
from trainyard.model.zoo import ZOO
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


def snapshot_record(view: Snapshot) -> dict[str, Any]:
    """Return all that a decision needs to know, in the form of a snapshot file."""
    rules, made = view.rules, () if view.bars is None else view.bars.made
    cluster = cluster_record(replace(view.nodes.cluster, reservations=made))
    names = dict(zip(view.nodes.ids, names_of(cluster), strict=True))
    given = {
        "round_s": rules.round_s,
        "restart_s": rules.restart_s,
        "start_s": rules.start_s,
        "seed": rules.seed,
    }
    records = sorted(view.table.records, key=lambda record: record.seq)
    return {
        "now_s": view.now_s,
        "cluster": cluster,
        "rules": {name: value for name, value in given.items() if value is not None},
        "down": [names[view.nodes.ids[i]] for i in _down(view)],
        "jobs": [_job(view, record, names) for record in records],
        "books": {
            "version": view.version,
            "met": view.met,
            "rows": [record.job_id for record in view.table.records],
            "target": list(view.target),
            "free_cpus": [view.free.at(i)[1] for i in range(len(names))],
            "free_memory_gb": [view.free.at(i)[2] for i in range(len(names))],
            "said": finite(view.said),
            **({} if view.usage is None else {"usage": view.usage.record()}),
            **_learnt(view),
            **({"decided_s": view.decided_s} if isfinite(view.decided_s) else {}),
        },
    }


def _down(view: Snapshot) -> list[int]:
    """Nodes that nobody can use, unless a reservation says so anyway."""
    kept = 0 if view.bars is None else view.bars.nobodys(view.now_s)
    return [i for i, up in enumerate(view.up.tolist()) if not up and not kept >> i & 1]


def _learnt(view: Snapshot) -> dict[str, Any]:
    """What is known of past jobs, if anybody asked for it, and what reports corrected."""
    known = {
        "history": [] if view.history is None else view.history.record(),
        "corrections": view.corrections.record(),
    }
    return {name: entries for name, entries in known.items() if entries}


def finite(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan said, without the numbers that no file can hold."""
    kept = {name: told for name, told in said.items() if not isinstance(told, float) or isfinite(told)}
    return {name: finite(told) if isinstance(told, Mapping) else told for name, told in kept.items()}


def _job(view: Snapshot, record: Record, names: Mapping[str, str]) -> dict[str, Any]:
    """A job, what users read of its progress, and the core's own numbers."""
    job, left = record.job, record.remaining_at(view.now_s)
    entry = {**job_record(job), "attained_gpu_s": record.attained_gpu_s(view.now_s)}
    if job.profile is not None and (
        job.model not in ZOO or ZOO[job.model].profile.content is not job.profile.content
    ):
        entry["profile"] = profile_record(job.profile)
    if record.length is not None:
        pass  # its `record` says what is believed to be left
    elif left > 0 and job.samples is None:
        entry["remaining_s"] = min(left / view.speed.reference_rate(job), job.duration_s or 0.0)
    elif left > 0:
        entry["remaining_samples"] = left
    allocation = view.target.get(job.job_id)
    if allocation is not None:
        entry["allocation"] = _shares(allocation, names)
    return {**entry, "record": _numbers(view, record)}


def _shares(allocation: Allocation, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        names[node]: {"gpus": gpus, "servers": servers, "cpus": cpus, "memory_gb": memory_gb}
        for node, gpus, servers, cpus, memory_gb in allocation.shares
    }


def _numbers(view: Snapshot, record: Record) -> dict[str, Any]:
    seen = {} if record.seen is None else record.seen.record()
    first = {} if record.first_start_s is None else {"first_start_s": record.first_start_s}
    rate = {"rate": record.rate} if record.given else {}
    reported = {} if record.reported_s < 0 else {"reported_s": record.reported_s, "pace": record.pace}
    length = {} if record.length is None else {"length": record.length.record(record.total)}
    return {
        "seq": record.seq,
        "arrived_s": record.arrival_s,
        "remaining": record.remaining,
        "since_s": record.since,
        "given_since_s": record.given_since,
        "attained": record.attained,
        "executed": record.executed,
        "met": record.met,
        "saved": record.saved,
        "run_since_s": record.run_since_s,
        "restarts": record.restarts,
        "preemptions": record.preemptions,
        "trained_with": record.trained_with,
        **first,
        **rate,
        **seen,
        **length,
        **reported,
    }
