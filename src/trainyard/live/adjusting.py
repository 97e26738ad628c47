"""A controller starts with other options than the store knows: what differs becomes events, and is said."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.core.events import DecisionsResumed, Event, NodeJoined, NodeLeft, PolicyChanged, RulesChanged
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, Node


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
    here, wanted = _here(yard), {node.node_id: node for node in cluster.nodes}
    kept = {*_kept(yard, cluster)}
    for name, node in here.items():
        if wanted.get(name) != node and name not in kept:
            yield NodeLeft(now, name)
    for name, node in wanted.items():
        if here.get(name) != node and name not in kept:
            yield NodeJoined(now, node)


def _here(yard: Yard) -> dict[str, Node]:
    return {n.node_id: n for n in yard.cluster.nodes if n.node_id not in yard.conditions.away}


def _kept(yard: Yard, cluster: Cluster) -> dict[str, list[str]]:
    """Return nodes that should be others, and the jobs there.

    They stay as they are: the core takes a node that joins for an empty one, and would start these jobs again
    while they run.
    """
    jobs: dict[str, list[str]] = {}
    for record in (*yard.table.records, *yard.parked.values()):
        for share in record.occupies.shares if record.occupies is not None else ():
            jobs.setdefault(share.node, []).append(record.job_id)
    here = _here(yard)
    return {
        node.node_id: jobs[node.node_id]
        for node in cluster.nodes
        if node.node_id in jobs and here.get(node.node_id) != node
    }


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
    """Return what a cluster file says that the store does not and that stays as the store knows it."""
    ours, theirs = yard.cluster.tenants, cluster.tenants
    kept = [
        f"node {name} is not as in the cluster file: {', '.join(jobs)} runs there; when it is empty, "
        "`trainyard down` and `up` change it"
        for name, jobs in _kept(yard, cluster).items()
    ]
    return kept + [
        f"tenant {name} is not as in the cluster file: the store decides"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
