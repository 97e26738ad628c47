"""A controller starts with other options than the store knows: what differs becomes events, and is said."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.core.events import DecisionsResumed, Event, NodeJoined, NodeLeft, PolicyChanged, RulesChanged
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster


def adjustments(
    yard: Yard,
    policy: str,
    cluster: Cluster | None,
    wanted: str | None,
    rules: dict[str, float | int | None],
    now: float,
) -> Iterator[Event]:
    """Return the events that lead from what the store knows to what `up` was told."""
    if cluster is not None:
        yield from _nodes(yard, cluster, now)
    if wanted is not None and wanted != policy:
        yield PolicyChanged(now, wanted)
    changes = {name: value for name, value in rules.items() if getattr(yard.rules, name) != value}
    if changes:
        yield RulesChanged(now, changes)
    if yard.paused:
        yield DecisionsResumed(now)


def _nodes(yard: Yard, cluster: Cluster, now: float) -> Iterator[Event]:
    here = {n.node_id: n for n in yard.cluster.nodes if n.node_id not in yard.conditions.away}
    wanted = {node.node_id: node for node in cluster.nodes}
    for name, node in here.items():
        if wanted.get(name) != node:
            yield NodeLeft(now, name)
    for name, node in wanted.items():
        if here.get(name) != node:
            yield NodeJoined(now, node)


def told(event: Event) -> str:
    """Say what differs from the last time; "" if nobody needs to know."""
    match event:
        case NodeLeft():
            return f"node {event.node} is not in the cluster any more, or not as it was"
        case NodeJoined():
            return f"node {event.node.node_id} is new, or not as it was"
        case PolicyChanged():
            return f"the policy is now {event.name}"
        case RulesChanged():
            return "now " + ", ".join(f"{name} is {value}" for name, value in event.changes.items())
    return ""


def unlike(yard: Yard, cluster: Cluster) -> list[str]:
    """Return what a cluster file says of tenants that the store does not: there the store decides."""
    ours, theirs = yard.cluster.tenants, cluster.tenants
    return [
        f"tenant {name} is not as in the cluster file: the store decides"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
