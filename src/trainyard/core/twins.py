"""A yard once more: forked in memory, or written down and read again. It decides the same from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import inf
from typing import Any

import numpy as np

from trainyard.core.answers import allocation_of, shares_record
from trainyard.core.real.conditions import Conditions
from trainyard.core.real.nodes import bars_of, see_away
from trainyard.core.real.seats import Seats
from trainyard.core.real.shunning import see_shuns
from trainyard.core.saving import finite
from trainyard.core.wire import job_from_record, job_to_record, plain, reservation_of
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.allocation import Plan
from trainyard.model.cluster import Cluster, GpuType, Node, NodeTable
from trainyard.model.rules import Rules
from trainyard.model.tenant import Tenant
from trainyard.policy.policy import Decides
from trainyard.state import corrections, history, usage
from trainyard.state.length import restored as length_of
from trainyard.state.lifecycle import State
from trainyard.state.record import ATTRIBUTES, Record
from trainyard.state.room import PartlyClosed, Room
from trainyard.state.seen import restored
from trainyard.state.snapshot import Snapshot
from trainyard.state.trouble import Trouble

VERSION = 1
Decide = Callable[[Snapshot], Plan]
Policies = Callable[[str], Decides]
# Of a yard and of its view, what is a number.
COUNTS = (
    "all_gpus",
    "now_s",
    "paused",
    "refused",
    "up_gpus",
    "_met",
    "_met_at",
    "_runs",
    "said_s",
    "seq",
    "_special",
    "_wake_s",
)
LOOKS = ("decided_s", "freed", "met", "node_events", "now_s", "reports", "up_gpus")


def fork(yard: Yard, decide: Decide | None = None) -> Yard:
    """Return an independent copy, about which another policy may decide; its story begins here."""
    twin = Yard(
        yard.cluster,
        decide or yard.decider,
        yard.rules,
        yard.model,
        indices=yard.seats is not None,
        remember=yard.over.most,
        policies=yard.policies,
    )
    for name in COUNTS:
        setattr(twin, name, getattr(yard, name))
    twin.look_at(yard.view.fork())
    twin.parked = {job_id: record.copy() for job_id, record in yard.parked.items()}
    twin.over = yard.over.copy()
    twin.timers = yard.timers.copy()
    twin.conditions = yard.conditions.copy()
    twin.pending, twin.leaving, twin.counted = yard.pending.copy(), yard.leaving.copy(), yard.counted.copy()
    twin.lengths.history = yard.lengths.history and yard.lengths.history.copy()
    twin.lengths.restore(yard.lengths.entries(), twin.records, yard.lengths.noted)
    twin.model, twin.speed, twin.corrections = yard.model, yard.speed, twin.view.corrections
    twin.seats = None if yard.seats is None else yard.seats.copy()
    return twin


def state_of(yard: Yard) -> dict[str, Any]:
    """Return all that a yard knows, except its story, as plain data that JSON can hold."""
    view, free, conditions = yard.view, yard.free, yard.conditions
    return {
        "v": VERSION,
        "cluster": _cluster_record(yard.cluster),
        "rules": {name: _number(value) for name, value in asdict(yard.rules).items()},
        "counts": {name: _number(getattr(yard, name)) for name in COUNTS},
        "looks": {name: _number(getattr(view, name)) for name in LOOKS},
        "version": yard.table.changed.version,
        "records": [_record(record) for record in yard.table.records],
        "parked": [_record(record) for record in yard.parked.values()],
        "over": [_record(record) for record in yard.over.records.values()],
        "remember": yard.over.most,
        "awaited": yard.over.awaited,
        "target": {job_id: shares_record(allocation) for job_id, allocation in yard.target.items()},
        "pending": list(yard.pending),
        "leaving": yard.leaving,
        "counted": yard.counted,
        "timers": yard.timers.entries(),
        "up": view.up.tolist(),
        "free": [free.gpus, free.cpus, free.memory_gb],
        "free_is_plain": free.plain,
        "closed": _closed(free),
        "conditions": {
            "down": sorted(conditions.down),
            "away": sorted(conditions.away),
            "drained": sorted(conditions.drained),
            "closed": sorted(conditions.closed),
            "broken": {node: sorted(indices) for node, indices in conditions.broken.items()},
            "reservations": [plain(r) for r in conditions.reservations.values()],
        },
        "seats": None if yard.seats is None else {j: dict(taken) for j, taken in yard.seats.of.items()},
        "said": finite(view.said),
        "usage": None if view.usage is None else view.usage.record(),
        "history": None if yard.lengths.history is None else yard.lengths.history.record(),
        "due": [yard.lengths.noted, yard.lengths.entries()],
        "corrections": yard.corrections.record(),
    }


def yard_of(state: Mapping[str, Any], decide: Decide, policies: Policies | None = None) -> Yard:
    """Return the yard that a state was taken of."""
    if state.get("v") != VERSION:
        raise InputError(f"the state is of version {state.get('v')!r}; this is version {VERSION}")
    rules = Rules(**{name: _infinite(value) for name, value in state["rules"].items()})
    seats = state["seats"]
    yard = Yard(
        _cluster_of(state["cluster"]),
        decide,
        rules,
        indices=seats is not None,
        remember=state["remember"],
        policies=policies,
    )
    for name, value in state["counts"].items():
        setattr(yard, name, _infinite(value))
    _restore_jobs(yard, state)
    _restore_nodes(yard, state)
    for name in LOOKS:
        setattr(yard.view, name, _infinite(state["looks"][name]))
    yard.view.said = state["said"]
    yard.view.usage = None if state["usage"] is None else usage.restored(state["usage"])
    yard.look_at(yard.view)
    see_shuns(yard)
    yard.lengths.history = None if state["history"] is None else history.restored(state["history"])
    yard.lengths.restore(state["due"][1], yard.records, state["due"][0])
    yard.believe_corrections(corrections.restored(state["corrections"]))
    return yard


def _restore_jobs(yard: Yard, state: Mapping[str, Any]) -> None:
    """Take in all jobs, in the order in which they were."""
    nodes = yard.nodes
    for entry in state["records"]:
        yard.table.add(_record_of(entry, nodes))
    yard.table.resized = 0
    for job_id, shares in state["target"].items():
        yard.target[job_id] = allocation_of(shares, nodes)
        yard.table.resized += yard.records[job_id].given != yard.records[job_id].gpus
    for record in sorted(yard.table.records, key=lambda record: record.seq):
        if record.job_id not in yard.target:
            yard.waiting.add(record)
    yard.parked = {entry["job_id"]: _record_of(entry, nodes) for entry in state["parked"]}
    yard.over.records = {entry["job_id"]: _record_of(entry, nodes) for entry in state["over"]}
    yard.over.awaited = {first: list(those) for first, those in state["awaited"].items()}
    yard.over.wanted = bool(yard.over.most or yard.over.awaited)
    yard.pending = dict.fromkeys(state["pending"])
    yard.table.go_on_at(state["version"])
    yard.timers.restore([(at, job_id) for at, job_id in state["timers"]])


def _restore_nodes(yard: Yard, state: Mapping[str, Any]) -> None:
    """Take in what is free, and what is the matter with nodes."""
    free = Room(*(list(column) for column in state["free"]))
    if state["closed"] is not None:
        free = PartlyClosed.like(free)
        free.closed = {i: (gpus, cpus, memory_gb) for i, gpus, cpus, memory_gb in state["closed"]}
    most = int(yard.nodes.gpus.max(initial=0))
    free.levels.extend([0] * (most + 1 - len(free.levels)))
    free.plain = state["free_is_plain"]
    yard.view.free = free
    yard.view.up = np.array(state["up"], dtype=np.bool_)
    said = state["conditions"]
    yard.conditions = Conditions(
        set(said["down"]),
        set(said["away"]),
        set(said["drained"]),
        {node: set(indices) for node, indices in said["broken"].items()},
        {entry["name"]: reservation_of(entry) for entry in said["reservations"]},
        set(said["closed"]),
    )
    yard.leaving, yard.counted = dict(state["leaving"]), dict(state["counted"])
    yard.view.bars = bars_of(yard)
    see_away(yard)
    if yard.seats is not None:
        yard.seats = Seats(yard.nodes)
        for node, indices in yard.conditions.broken.items():
            for index in indices:
                yard.seats.free.break_(node, index)
        for job_id, taken in state["seats"].items():
            yard.seats.of[job_id] = {node: tuple(indices) for node, indices in taken.items()}
            for node, indices in taken.items():
                yard.seats.free.claim(node, indices)


def _record(record: Record) -> dict[str, Any]:
    """Return all of a record that has not its value of the beginning."""
    entry = {name: _number(getattr(record, name)) for name in ATTRIBUTES}
    entry["job"] = job_to_record(record.job)
    entry["state"] = record.state.value
    entry["occupies"] = None if record.occupies is None else shares_record(record.occupies)
    entry["seen"] = None if record.seen is None else record.seen.record()
    entry["trouble"] = None if record.trouble is None else record.trouble.record()
    length = record.length
    entry["length"] = None if length is None else {**length.record(record.total), "noted": length.noted}
    return entry


def _record_of(entry: Mapping[str, Any], nodes: NodeTable) -> Record:
    record = Record(job_from_record(entry["job"]), 0, -1, (1.0, 1.0, 1.0), 0.0, 0.0)
    for name in ATTRIBUTES:
        if name not in ("job", "state", "occupies", "seen", "trouble", "length"):
            setattr(record, name, entry[name])
    record.state = State(entry["state"])
    record.occupies = None if entry["occupies"] is None else allocation_of(entry["occupies"], nodes)
    record.seen = None if entry["seen"] is None else restored(entry["seen"])
    record.trouble = None if entry["trouble"] is None else Trouble.of(entry["trouble"])
    if entry["length"] is not None:
        record.length, _ = length_of(entry["length"])
        record.length.noted = entry["length"]["noted"]
    record.row = -1
    return record


def _closed(free: Room) -> list[list[float]] | None:
    """What is free of closed nodes, by index; None if none was ever closed."""
    return [[i, *amount] for i, amount in free.closed.items()] if isinstance(free, PartlyClosed) else None


def _number(value: Any) -> Any:
    return str(value) if isinstance(value, float) and value in (inf, -inf) else value


def _infinite(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf") else value


def _cluster_record(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster node by node, in the order of their indices."""
    return {
        "name": cluster.name,
        "nodes": [asdict(node) for node in cluster.nodes],
        "gpu_types": [asdict(gpu_type) for gpu_type in cluster.gpu_types.values()],
        "tenants": [asdict(tenant) for tenant in cluster.tenants.values()],
    }


def _cluster_of(record: Mapping[str, Any]) -> Cluster:
    return Cluster(
        record["name"],
        tuple(Node(**node) for node in record["nodes"]),
        {entry["name"]: GpuType(**entry) for entry in record["gpu_types"]},
        {entry["name"]: Tenant(**entry) for entry in record["tenants"]},
    )
