"""Recompute the yard's bookkeeping from scratch and compare. Tests run this after every event."""

from __future__ import annotations

from collections import Counter

import numpy as np

from trainyard.core.yard import Yard
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation
from trainyard.model.tolerance import CPUS_GB
from trainyard.state.lifecycle import TERMINAL, WITH_PROCESSES, State
from trainyard.state.room import PartlyClosed, Room
from trainyard.state.usage import Name, names_of


def _require(truth: object, what: str) -> None:
    if not truth:
        raise TrainyardError(f"the yard is inconsistent: {what}")


def validate(yard: Yard) -> None:
    """Raise TrainyardError if any of the yard's books disagree."""
    for row, (record, job) in enumerate(zip(yard.table.records, yard.table.jobs, strict=True)):
        same = yard.records.get(job.job_id) is record and record.job is job and record.row == row
        _require(same, f"row of {job.job_id}")
    waiting = [record.job_id for record in yard.waiting]
    _require(sorted(waiting + list(yard.target)) == sorted(yard.records), "every job waits or has a target")
    in_order = sorted(waiting, key=lambda job_id: yard.records[job_id].seq)
    _require(waiting == in_order, "waiting jobs are in order of submission")
    _validate_states(yard)
    _validate_counts(yard)
    _validate_parked(yard)
    _validate_leaving(yard)
    _validate_usage(yard)
    _validate_capacity(yard)


def _validate_counts(yard: Yard) -> None:
    """Count anew what the table counts as jobs come, go and change."""
    table, records = yard.table, yard.table.records
    _require(table.gpus == sum(record.gpus for record in records), "GPUs that were requested")
    particular = sum(record.job.particular for record in records)
    _require(table.particular == particular, "jobs that ask for CPUs or memory")
    resized = sum(yard.records[job_id].given != yard.records[job_id].gpus for job_id in yard.target)
    _require(table.resized == resized, "jobs of another size than requested")


def _validate_parked(yard: Yard) -> None:
    for job_id, record in yard.parked.items():
        _require(record.job_id == job_id and record.row < 0, f"row of {job_id}, which is parked")
        _require(job_id not in yard.records and job_id not in yard.target, f"{job_id} is parked and planned")
        _require(record.state not in TERMINAL, f"{job_id} is over but parked")
        holds = record.state in (State.STOPPING, State.KILLING)
        _require((record.occupies is not None) == holds, f"{job_id} is {record.state} and parked")
        _require(not record.rate, f"rate of {job_id}, which is parked")


def _validate_leaving(yard: Yard) -> None:
    """Count anew who has to leave which node, and see that nobody starts beside them."""
    leaving: dict[str, int] = {}
    for record in (*yard.records.values(), *yard.parked.values()):
        if record.state in (State.STOPPING, State.KILLING) and record.occupies is not None:
            on = record.trouble.on if record.trouble is not None else None
            for share in record.occupies.shares:
                if on is None or share.node in on:
                    leaving[share.node] = leaving.get(share.node, 0) + 1
    _require(leaving == yard.leaving, "jobs that have to leave their nodes")
    up = sum(yard.counted.get(n.node_id, n.gpus) for n in yard.cluster.nodes)
    _require(up == yard.up_gpus == yard.view.up_gpus, "GPUs that are there")
    if yard.seats is not None:
        held = {r.job_id for r in (*yard.records.values(), *yard.parked.values()) if r.occupies is not None}
        _require(held == set(yard.seats.of), "jobs with GPUs of their own")


def _validate_states(yard: Yard) -> None:
    for job_id, record in yard.records.items():
        _require(record.state not in TERMINAL, f"{job_id} is over but active")
        holds = record.state in WITH_PROCESSES
        _require(
            (record.occupies is not None) == holds, f"{job_id} is {record.state} and holds {record.occupies}"
        )
        if record.state is State.RUNNING and job_id not in yard.pending:
            _require(yard.target.get(job_id) == record.occupies, f"{job_id} runs as planned")
        target = yard.target.get(job_id)
        _require(record.given == (target.gpus if target else 0), f"GPUs of {job_id}")
        _require((record.rate > 0) == (record.state is State.RUNNING), f"rate of {job_id}")
        if target is not None:
            _require(
                record.job.least_gpus <= target.gpus <= record.job.most_gpus, f"gang of {job_id} is whole"
            )


def _validate_usage(yard: Yard) -> None:
    usage, held = yard.usage, Counter[Name]()
    if usage is None:
        return
    for record in yard.table.records:
        held.update(dict.fromkeys(names_of(record.job), record.given))
    for name, account in usage.accounts.items():
        _require(account.gpus == held[name] and account.gpu_s >= 0, f"usage of {'/'.join(name)}")


def _validate_capacity(yard: Yard) -> None:
    free = Room.all_of(yard.nodes)
    occupied = Room.all_of(yard.nodes)
    for job_id, allocation in yard.target.items():
        free.take(yard.nodes, _by_name(yard, job_id, allocation))
    for record in (*yard.records.values(), *yard.parked.values()):
        if record.occupies is not None:
            on = record.trouble.on if record.trouble is not None else None
            if on is None:
                occupied.take(yard.nodes, _by_name(yard, record.job_id, record.occupies))
            else:  # the nodes that it is gone from may be others by now
                left = tuple(share for share in record.occupies.shares if share.node in on)
                occupied.take(yard.nodes, Allocation(left))
    for node, broken in yard.conditions.broken.items():
        free.add(yard.nodes.index[node], -len(broken), 0.0, 0.0)
    for node in yard.conditions.down | yard.conditions.away:
        i = yard.nodes.index[node]
        there = int(yard.nodes.gpus[i]) - len(yard.conditions.broken.get(node, ()))
        _require(free.gpus[i] == there, f"nothing is planned on {node}, which is down")
    whole = free.copy()
    if yard.conditions.closed:
        free = PartlyClosed.like(free)
        for node in yard.conditions.closed:
            free.close(yard.nodes.index[node])
    _require(yard.free.gpus == free.gpus and yard.free.total == free.total, "free GPUs add up")
    _require(yard.free.levels == free.levels, "nodes are grouped by free GPUs")
    _require(np.allclose(yard.free.cpus, free.cpus, atol=CPUS_GB), "free CPUs add up")
    _require(np.allclose(yard.free.memory_gb, free.memory_gb, atol=CPUS_GB), "free memory adds up")
    special = [r.job_id for r in yard.records.values() if r.special]
    others = [job_id for job_id, a in yard.target.items() if not yard.nodes.is_proportional(a)]
    _require(sorted(special) == sorted(others), "jobs with CPUs or memory of their own choice")
    _require(yard.free.plain == (not others), "whether free GPUs come with their shares")
    for books in (whole, occupied):
        enough = min(books.gpus) >= 0 and min(books.cpus) >= -CPUS_GB and min(books.memory_gb) >= -CPUS_GB
        _require(enough, "no resource is over-allocated")


def _by_name(yard: Yard, job_id: str, allocation: Allocation) -> Allocation:
    """Return it without the short cut that the yard's own books take, which must say the same."""
    plain, parts = allocation.plain, yard.nodes.parts(allocation)
    _require(not plain or list(plain) == parts, f"{job_id} holds the same by name and by index")
    _require(not plain or yard.nodes.is_proportional(allocation), f"{job_id} holds plain shares")
    return Allocation(allocation.shares)
