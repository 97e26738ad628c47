"""Clusters and snapshots that several tests of policies share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy
from trainyard.state.snapshot import Snapshot

TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
Seats = Mapping[str, Mapping[str, int]]  # job -> node -> GPUs


def nodes_of(*gpus: int) -> Cluster:
    """Nodes n0, n1, ... with these GPUs, 3 CPUs and 60 GB each."""
    made = (Node(f"n{i}", "GPU", count, 3.0 * count, 60.0 * count) for i, count in enumerate(gpus))
    return Cluster("some", tuple(made))


def two_types(v100: int = 2, k80: int = 2) -> Cluster:
    """One node of slow GPUs, k, and one of GPUs four times as fast, v."""
    nodes = (Node("k", "K80", k80, 3.0 * k80, 60.0 * k80), Node("v", "V100", v100, 3.0 * v100, 60.0 * v100))
    return Cluster("two", nodes, TYPES)


def fair(cluster: Cluster, seats: Mapping[str, int]) -> Allocation:
    """GPUs by node with their proportional shares."""
    node = {n.node_id: n for n in cluster.nodes}
    shares = (
        Share(
            name,
            gpus,
            0,
            gpus * node[name].cpus / node[name].gpus,
            gpus * node[name].memory_gb / node[name].gpus,
        )
        for name, gpus in seats.items()
    )
    return Allocation(tuple(shares))


def yard_of(
    cluster: Cluster, jobs: Iterable[Job], held: Seats | None = None, policy: str = "fifo", **rules: float
) -> Yard:
    """A yard with these jobs, all submitted at 0; those in `held` run since 0, the policy decides later."""
    first = {name: fair(cluster, seats) for name, seats in (held or {}).items()}
    chosen = parse_policy(policy)
    yard = Yard(
        cluster,
        lambda snapshot: chosen.decide(snapshot) if snapshot.now_s else Plan(first),
        Rules(**rules),
    )
    for job in jobs:
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    return yard


def snapshot_of(
    cluster: Cluster, jobs: Iterable[Job], held: Seats | None = None, now_s: float = 0.0, **rules: float
) -> Snapshot:
    """What a policy sees of them."""
    return yard_of(cluster, jobs, held, **rules).snapshot(now_s)


def drafted(
    choose: Callable[[Draft], Reselection | None], snapshot: Snapshot
) -> dict[str, Allocation | None]:
    """Run a choice on a draft of the snapshot; return the changes. The room is lent, and given back."""
    draft, before = Draft(snapshot), room_of(snapshot)
    if (selection := choose(draft)) is not None:
        selection.run()
    changes = draft.close()
    assert room_of(snapshot) == before
    return changes


def room_of(snapshot: Snapshot) -> tuple[object, ...]:
    """All that is free, to compare with."""
    free = snapshot.free
    lists = (free.gpus, free.cpus, free.memory_gb, free.levels)
    return *(tuple(numbers) for numbers in lists), free.total, free.plain


def names(snapshot: Snapshot, rows: Iterable[int]) -> list[str]:
    """Ids of some rows."""
    return [snapshot.table.jobs[row].job_id for row in rows]
