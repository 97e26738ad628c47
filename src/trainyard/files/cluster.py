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
from trainyard.files.reservations import read_reservations, reservation_record
from trainyard.model.cluster import CPUS_PER_GPU, DEFAULT_GPU_TYPE, MEMORY_GB_PER_GPU, Cluster, GpuType, Node
from trainyard.model.limits import MAX_GPUS, MAX_NODES
from trainyard.model.tenant import Tenant

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
    nodes = _nodes(given["nodes"], place.at("nodes"))
    tenants = {name: Tenant(name, **entry) for name, entry in given.get("tenants", {}).items()}
    _check_tenants(tenants, sum(node.gpus for node in nodes), place.at("tenants"))
    reserved = read_reservations(given.get("reservations", ()), nodes, place.at("reservations"))
    return Cluster(given.get("name", "cluster"), nodes, types, tenants, reserved)


def _check_tenants(tenants: Mapping[str, Tenant], gpus: int, place: Position) -> None:
    """Refuse promises that cannot be kept."""
    promised = 0
    for name, tenant in tenants.items():
        promised += tenant.guaranteed
        if tenant.limit is not None and tenant.guaranteed > tenant.limit:
            what = f"{tenant.guaranteed} is more than its limit; it must be at most {tenant.limit}"
            raise place.error(what, name, "guaranteed")
        if promised > gpus:
            what = f"the tenants up to this one are guaranteed {promised} GPUs; they must be at most {gpus}"
            raise place.error(what + ", all that the cluster has", name, "guaranteed")


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
    tenants = {name: _tenant_record(tenant) for name, tenant in cluster.tenants.items()}
    record = {
        "name": cluster.name,
        **({"gpu_types": types} if types else {}),
        "nodes": nodes,
        **({"tenants": tenants} if tenants else {}),
    }
    if cluster.reservations:
        names = dict(zip([node.node_id for node in cluster.nodes], names_of(record), strict=True))
        record["reservations"] = [reservation_record(r, names) for r in cluster.reservations]
    return record


def _tenant_record(tenant: Tenant) -> dict[str, Any]:
    """Return a tenant as data for a file, without what has its default value."""
    plain = asdict(Tenant(tenant.name))
    return {name: value for name, value in asdict(tenant).items() if value != plain[name]}


def names_of(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes of a cluster that is written as this record."""
    return [node.node_id for node in parse_cluster(record, "the cluster").nodes]
