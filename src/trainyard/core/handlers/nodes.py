"""What happens to nodes: each event is handled, or moot with a reason."""

from __future__ import annotations

from trainyard.core.events import (
    GpuFailed,
    GpuRepaired,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    ReservationDropped,
    ReservationMade,
)
from trainyard.core.handlers.moot import MootError, Table
from trainyard.core.real import nodes
from trainyard.core.real.fitting import look_at_all
from trainyard.core.works import Works
from trainyard.errors import TrainyardError
from trainyard.model.reserving import settled


def _node(yard: Works, name: str, *, away: bool = False) -> str:
    """Return the name of a node that is known and, unless asked for, has not left."""
    if name not in yard.nodes.index or (name in yard.conditions.away and not away):
        raise MootError(f"there is no node {name}")
    return name


def _joined(yard: Works, event: NodeJoined, now: float) -> None:
    node = event.node
    if nodes.RETIRED in node.node_id:
        raise MootError(f"{nodes.RETIRED} in the name of a node is for nodes that left")
    if node.node_id in yard.nodes.index and node.node_id not in yard.conditions.away:
        raise MootError(f"node {node.node_id} is here already")
    if node.node_id in yard.nodes.index:
        nodes.fenced(yard, node.node_id, now)
    nodes.join(yard, node, now)
    look_at_all(yard, now)


def _left(yard: Works, event: NodeLeft, now: float) -> None:
    nodes.leave(yard, _node(yard, event.node), now)
    look_at_all(yard, now)


def _drained(yard: Works, event: NodeDrained, now: float) -> None:
    node = _node(yard, event.node)
    if node in yard.conditions.drained:
        raise MootError(f"node {node} is drained already")
    nodes.drain(yard, node, now)


def _undrained(yard: Works, event: NodeUndrained, now: float) -> None:
    node = _node(yard, event.node)
    if node not in yard.conditions.drained:
        raise MootError(f"node {node} is not drained")
    yard.conditions.drained.remove(node)
    nodes.reopen(yard, node, now)


def _node_failed(yard: Works, event: NodeFailed, now: float) -> None:
    node = _node(yard, event.node)
    if node in yard.conditions.down:
        raise MootError(f"node {node} is down already")
    yard.node_failed(now, node)


def _fenced(yard: Works, event: NodeFenced, now: float) -> None:
    node = _node(yard, event.node, away=True)
    if node not in yard.conditions.down | yard.conditions.away:
        raise MootError(f"node {node} is up")
    if node not in yard.leaving:
        raise MootError(f"nothing was left on node {node}")
    nodes.fenced(yard, node, now)


def _repaired(yard: Works, event: NodeRepaired, now: float) -> None:
    node = _node(yard, event.node)
    if node not in yard.conditions.down:
        raise MootError(f"node {node} is up")
    nodes.fenced(yard, node, now)
    yard.node_repaired(now, node)


def _gpu_failed(yard: Works, event: GpuFailed, now: float) -> None:
    node = _node(yard, event.node)
    if not 0 <= event.index < yard.nodes.gpus[yard.nodes.index[node]]:
        raise MootError(f"node {node} has no GPU {event.index}")
    if event.index in yard.conditions.broken.get(node, ()):
        raise MootError(f"GPU {event.index} of node {node} failed already")
    nodes.break_gpu(yard, node, event.index, now)


def _gpu_repaired(yard: Works, event: GpuRepaired, now: float) -> None:
    node = _node(yard, event.node)
    if event.index not in yard.conditions.broken.get(node, ()):
        raise MootError(f"GPU {event.index} of node {node} did not fail")
    nodes.mend_gpu(yard, node, event.index, now)


def _reserved(yard: Works, event: ReservationMade, now: float) -> None:
    wish, conditions = event.reservation, yard.conditions
    if wish.name in conditions.reservations:
        raise MootError(f"there is a reservation {wish.name} already")
    for node in wish.nodes:
        _node(yard, node)
    if not (wish.nodes or wish.gpus > 0) or not wish.from_s < wish.to_s or wish.to_s <= now:
        raise MootError("it reserves nothing: there is no node, or no time")
    there = [node for node in yard.cluster.nodes if node.node_id not in conditions.away]
    try:
        made = settled(wish, there, list(conditions.reservations.values()))
    except TrainyardError as error:
        raise MootError(str(error)) from None
    conditions.reservations[wish.name] = made
    nodes.turn(yard, now)


def _unreserved(yard: Works, event: ReservationDropped, now: float) -> None:
    if event.name not in yard.conditions.reservations:
        raise MootError(f"there is no reservation {event.name}")
    nodes.unreserve(yard, event.name, now)


HANDLERS: Table = {
    NodeJoined: _joined,
    NodeLeft: _left,
    NodeDrained: _drained,
    NodeUndrained: _undrained,
    NodeFailed: _node_failed,
    NodeFenced: _fenced,
    NodeRepaired: _repaired,
    GpuFailed: _gpu_failed,
    GpuRepaired: _gpu_repaired,
    ReservationMade: _reserved,
    ReservationDropped: _unreserved,
}
