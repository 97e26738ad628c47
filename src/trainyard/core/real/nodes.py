"""Nodes come and go, fail, are drained and reserved; single GPUs fail. Nothing new starts on a closed node.

Indices of nodes are never used again: a node that joins is the last one, a node that left stays closed for
ever, so that nothing that names nodes by index has to be made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np

from trainyard.core.instructions import FENCE
from trainyard.core.real.leaving import failed, gone_from, wind_up
from trainyard.core.works import Works
from trainyard.model.allocation import Allocation
from trainyard.model.cluster import Node, NodeTable
from trainyard.model.reservation import Reservation
from trainyard.model.reserving import all_settled
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.state.bars import Bars
from trainyard.state.lifecycle import WITH_PROCESSES, State
from trainyard.state.record import Record
from trainyard.state.room import PartlyClosed

RETIRED = "~"  # in the name of a node that left and came back as another one


def turn(yard: Works, now: float) -> None:
    """Reservations begin and end: close and open nodes, and stop jobs that are in the way."""
    gone = [r for r in yard.conditions.reservations.values() if r.to_s <= now]
    for reservation in gone:
        del yard.conditions.reservations[reservation.name]
    kept = [r for r in yard.conditions.reservations.values() if r.from_s <= now]
    for reservation in kept:
        for record in list(_on(yard, reservation.nodes)):
            if not reservation.tenant or record.job.tenant != reservation.tenant:
                make_way(yard, record, now, f"its node is reserved ({reservation.name})")
    for node in {node for r in gone for node in r.nodes} | {node for r in kept for node in r.nodes}:
        _set_closed(yard, node, _is_closed(yard, node, now))
    view, before = yard.view, yard.view.bars
    view.bars = bars_of(yard)
    if view.bars is not None and not isinstance(yard.free, PartlyClosed):
        yard.free = view.free = PartlyClosed.like(yard.free)
    view.node_events += 1
    if view.bars is not None or before is not None:
        view.freed += 1  # others may start there than before
    turns = [t for r in yard.conditions.reservations.values() for t in (r.from_s, r.to_s) if t > now]
    yard.timers.at(min(turns, default=inf))


def reserve(yard: Works, wishes: tuple[Reservation, ...], now: float) -> None:
    """Keep the reservations of a cluster file from now on; later only the conditions know of them."""
    yard.cluster = yard.nodes.cluster = replace(yard.cluster, reservations=())
    made = all_settled(wishes, yard.cluster.nodes)
    yard.conditions.reservations = {reservation.name: reservation for reservation in made}
    turn(yard, now)


def _is_closed(yard: Works, node: str, now: float) -> bool:
    """Whether nobody may start on a node, for any reason."""
    conditions = yard.conditions
    if node in conditions.down or node in conditions.away or node in conditions.drained:
        return True
    windows = [r for r in conditions.reservations.values() if not r.tenant and node in r.nodes]
    return any(r.from_s <= now < r.to_s for r in windows)


def bars_of(yard: Works) -> Bars | None:
    """Return who may not start where, if there are reservations."""
    index, made = yard.nodes.index, tuple(yard.conditions.reservations.values())
    masks = [(r, sum(1 << index[node] for node in r.nodes)) for r in made]
    return Bars([(r.from_s, r.to_s, r.tenant, mask) for r, mask in masks], made) if masks else None


def _on(yard: Works, nodes: tuple[str, ...]) -> Iterator[Record]:
    """Every job that was given something on one of these nodes, or has processes there."""
    among = frozenset(nodes)
    for record in (*yard.table.records, *yard.parked.values()):
        if _touches(yard.target.get(record.job_id), among) or _touches(record.occupies, among):
            yield record


def _touches(allocation: Allocation | None, among: frozenset[str]) -> bool:
    return allocation is not None and any(share.node in among for share in allocation.shares)


def make_way(yard: Works, record: Record, now: float, cause: str) -> None:
    """Let a job that runs or was going to leave a place that others have from now on."""
    if record.job_id in yard.target and record.state is not State.RUNNING:
        yard.take_back(record, now)
    elif record.state is State.RUNNING:
        wind_up(yard, record, now, State.WAITING, cause, "stop")


def _set_closed(yard: Works, node: str, closed: bool) -> None:
    """Close or open a node, and count what can be used of it."""
    i, conditions = yard.nodes.index[node], yard.conditions
    if closed and not isinstance(yard.free, PartlyClosed):
        yard.free = yard.view.free = PartlyClosed.like(yard.free)
    if isinstance(yard.free, PartlyClosed):
        if closed:
            yard.free.close(i)
        else:
            yard.free.open(i)
    if closed:
        conditions.closed.add(node)
    else:
        conditions.closed.discard(node)
    count_up(yard, node)


def count_up(yard: Works, node: str) -> None:
    """Work out how many GPUs of a node count as there: of a closed one, those that are in use."""
    i, conditions = yard.nodes.index[node], yard.conditions
    there = int(yard.nodes.gpus[i]) - len(conditions.broken.get(node, ()))
    counts = there - yard.free.at(i)[0] if node in conditions.closed else there
    view = yard.view
    before = yard.counted.get(node, int(yard.nodes.gpus[i]))
    if counts != before:
        yard.counted[node] = counts
        yard.up_gpus += counts - before
        view.up_gpus = yard.up_gpus
        view.freed += 1
        view.node_events += 1
    if bool(view.up[i]) != (counts > 0):
        view.up = view.up.copy()
        view.up[i] = counts > 0


def fail(yard: Works, node: str, now: float, cause: str) -> None:
    """A node is lost, and with it all that ran there since the last checkpoints."""
    lost = list(_on(yard, (node,)))
    for record in lost:
        if record.job_id in yard.target and record.state is State.WAITING:
            yard.take_back(record, now)
    for record in lost:
        if record.state in (State.RUNNING, State.STOPPING) and _touches(record.occupies, frozenset((node,))):
            failed(yard, record, now, "node_lost", cause, "kill")
        elif record.job_id in yard.target and _touches(yard.target[record.job_id], frozenset((node,))):
            yard.take_back(record, now)  # it was going to move there
    _set_closed(yard, node, True)
    if any(_touches(record.occupies, frozenset((node,))) for record in lost):
        yard.out.append((FENCE, None, node))
    yard.go_on(now)


def fenced(yard: Works, node: str, now: float) -> None:
    """Nothing runs on a node for certain."""
    for record in list(_on(yard, (node,))):
        if record.state in WITH_PROCESSES and record.state is not State.RUNNING:
            gone_from(yard, record, node, now)


def reopen(yard: Works, node: str, now: float) -> None:
    """Use a node again, unless something else keeps it closed."""
    _set_closed(yard, node, _is_closed(yard, node, now))
    if node not in yard.conditions.closed:
        yard.go_on(now)


def drain(yard: Works, node: str, now: float) -> None:
    """Let nothing new start on a node; who only waits to start there is planned anew."""
    yard.conditions.drained.add(node)
    for record in [yard.records[job_id] for job_id in yard.pending]:
        if record.state is not State.RUNNING and _touches(yard.target[record.job_id], frozenset((node,))):
            yard.take_back(record, now)
    reopen(yard, node, now)


def unreserve(yard: Works, name: str, now: float) -> None:
    """Give up a reservation."""
    reservation = yard.conditions.reservations.pop(name)
    turn(yard, now)
    for node in reservation.nodes:
        if node in yard.nodes.index:
            reopen(yard, node, now)


def join(yard: Works, node: Node, now: float) -> None:
    """A node is new, or back with the same GPUs, or with others: then it is a new one."""
    conditions, at = yard.conditions, yard.nodes.index.get(node.node_id)
    if at is not None and yard.cluster.nodes[at] != node:
        nodes = list(yard.cluster.nodes)
        retired = f"{node.node_id}{RETIRED}{len(nodes)}"
        nodes[at] = replace(nodes[at], node_id=retired)
        yard.cluster = replace(yard.cluster, nodes=tuple(nodes))
        conditions.away.add(retired)
        if node.node_id in conditions.broken:
            conditions.broken[retired] = conditions.broken.pop(node.node_id)
        conditions.closed.add(retired)
        yard.counted[retired] = yard.counted.pop(node.node_id, 0)
        at = None
    conditions.away.discard(node.node_id)
    conditions.down.discard(node.node_id)
    if at is None:
        conditions.closed.discard(node.node_id)
        _append(yard, node)
    see_away(yard)
    yard.all_gpus = sum(n.gpus for n in yard.cluster.nodes if n.node_id not in conditions.away)
    if conditions.reservations:
        turn(yard, now)  # one of this name may be another node now
    reopen(yard, node.node_id, now)


def _append(yard: Works, node: Node) -> None:
    """Make everything one node longer that is kept by the index of nodes."""
    yard.cluster = replace(yard.cluster, nodes=(*yard.cluster.nodes, node))
    yard.nodes = NodeTable(yard.cluster)
    yard.model = SpeedModel(yard.cluster)
    yard.believe_corrections(yard.corrections)
    yard.several_types = len(yard.nodes.types) > 1
    view = yard.view
    yard.free.append(node.gpus, node.cpus, node.memory_gb)
    yard.counted[node.node_id] = node.gpus
    yard.up_gpus += node.gpus
    view.nodes, view.sensitivity = yard.nodes, Sensitivity(yard.cluster, yard.speed)
    view.up = np.append(view.up, True)
    view.up_gpus = yard.up_gpus
    view.freed += 1
    view.node_events += 1
    view.caches.clear()
    if yard.seats is not None:
        yard.seats.free.add_node(node.node_id, node.gpus)


def leave(yard: Works, node: str, now: float) -> None:
    """A node is taken out of the cluster."""
    fail(yard, node, now, f"node {node} left")
    yard.conditions.down.discard(node)
    yard.conditions.drained.discard(node)
    yard.conditions.away.add(node)
    see_away(yard)
    away = yard.conditions.away
    yard.all_gpus = max(sum(n.gpus for n in yard.cluster.nodes if n.node_id not in away), 1)


def see_away(yard: Works) -> None:
    """Let policies see which nodes left."""
    index = yard.nodes.index
    yard.view.away = frozenset(index[node] for node in yard.conditions.away)


def break_gpu(yard: Works, node: str, index: int, now: float) -> None:
    """One GPU cannot be used any more: whoever holds it is started again, without it."""
    i, cause = yard.nodes.index[node], f"GPU {index} of node {node} failed"
    holder = None if yard.seats is None else yard.find(yard.seats.holder(node, index) or "")
    if holder is not None and holder.state in (State.RUNNING, State.STOPPING):
        failed(yard, holder, now, "node_lost", cause, "kill")
    while yard.free.at(i)[0] < 1:  # it is not known whose it is, or it was promised to somebody
        _give_up_one(yard, node, now, cause)
    yard.free.add(i, -1, 0.0, 0.0)
    yard.conditions.broken.setdefault(node, set()).add(index)
    if yard.seats is not None:
        yard.seats.free.break_(node, index)
    count_up(yard, node)
    yard.go_on(now)


def _give_up_one(yard: Works, node: str, now: float, cause: str) -> None:
    """Take a node from the job that got there last: one that only waits to start, if there is any."""
    there = [r for r in _on(yard, (node,)) if _touches(yard.target.get(r.job_id), frozenset((node,)))]
    record = max(there, key=lambda r: (r.state is not State.RUNNING, r.start, r.seq))
    if record.state is State.RUNNING:
        failed(yard, record, now, "node_lost", cause, "kill")
    else:
        yard.take_back(record, now)


def mend_gpu(yard: Works, node: str, index: int, now: float) -> None:
    """A GPU that failed can be used again."""
    yard.conditions.broken[node].remove(index)
    if not yard.conditions.broken[node]:
        del yard.conditions.broken[node]
    yard.free.add(yard.nodes.index[node], 1, 0.0, 0.0)
    if yard.seats is not None:
        yard.seats.free.mend(node, index)
    count_up(yard, node)
