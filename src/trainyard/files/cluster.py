"""Cluster files: what machines there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from trainyard.files.checking import check
from trainyard.files.document import load_document
from trainyard.files.position import Position
from trainyard.files.reading import StrPath
from trainyard.model.cluster import CPUS_PER_GPU, DEFAULT_GPU_TYPE, MEMORY_GB_PER_GPU, Cluster, GpuType, Node
from trainyard.model.limits import MAX_GPUS, MAX_NODES

if TYPE_CHECKING:
    from trainyard.files.schemas import ClusterEntry, NodeEntry

BANDWIDTHS = ("network_gbps", "intra_gbps", "storage_mbps")


def load_cluster(path: StrPath) -> Cluster:
    """Read a cluster file."""
    return _read(*load_document(path, "a cluster: name, gpu_types, nodes"))


def parse_cluster(data: object, where: str) -> Cluster:
    """Build a cluster from data as in a cluster file; `where` names its origin in errors."""
    return _read(data, Position(where))


def _read(data: object, place: Position) -> Cluster:
    from trainyard.files import schemas

    return build_cluster(check(schemas.CLUSTER, data, place), place)


def build_cluster(given: ClusterEntry, place: Position) -> Cluster:
    """Build a cluster from checked data."""
    types = {name: GpuType(name, **entry) for name, entry in given.get("gpu_types", {}).items()}
    return Cluster(given.get("name", "cluster"), _nodes(given["nodes"], place.at("nodes")), types)


def _nodes(entries: list[NodeEntry], place: Position) -> tuple[Node, ...]:
    nodes: list[Node] = []
    numbers: Counter[str] = Counter()
    gpus = count = 0
    for i, entry in enumerate(entries):
        gpus, count = gpus + entry["count"] * entry["gpus"], count + entry["count"]
        for has, most, what in ((gpus, MAX_GPUS, "GPUs"), (count, MAX_NODES, "nodes")):
            if has > most:
                so_far = f"the cluster has {has} {what} so far; it must have at most {most}"
                raise place.error(so_far, i, "count")
        nodes.extend(_expand(entry, numbers))
    return tuple(nodes)


def _expand(entry: NodeEntry, numbers: Counter[str]) -> Iterator[Node]:
    """Make the nodes of one entry; numbering continues over entries of the same prefix."""
    gpus = entry["gpus"]
    gpu_type = entry.get("gpu_type", DEFAULT_GPU_TYPE)
    prefix = entry.get("prefix", gpu_type)
    cpus = entry.get("cpus", CPUS_PER_GPU * gpus)
    memory_gb = entry.get("memory_gb", MEMORY_GB_PER_GPU * gpus)
    bandwidths = {name: value for name, value in entry.items() if name in BANDWIDTHS}
    for _ in range(entry["count"]):
        yield Node(f"{prefix}-{numbers[prefix]}", gpu_type, gpus, cpus, memory_gb, **bandwidths)  # type: ignore[arg-type]
        numbers[prefix] += 1


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as data for a file; nodes not named prefix-0, prefix-1, ... get such names."""
    kinds = groupby(cluster.nodes, lambda node: replace(node, node_id=node.node_id.rpartition("-")[0]))
    nodes = [{"count": len(list(alike)), **asdict(kind)} for kind, alike in kinds]
    for entry in nodes:
        entry["prefix"] = entry.pop("node_id") or entry["gpu_type"]
    types = {name: {"speed": t.speed, "memory_gb": t.memory_gb} for name, t in cluster.gpu_types.items()}
    return {"name": cluster.name, **({"gpu_types": types} if types else {}), "nodes": nodes}


def names_of(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes of a cluster that is written as this record."""
    return [node.node_id for node in parse_cluster(record, "the cluster").nodes]
