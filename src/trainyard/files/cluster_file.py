"""Cluster files: what machines there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainyard.files.document import load_document
from trainyard.files.reading import StrPath
from trainyard.files.section import Section
from trainyard.files.values import MAX_GPUS, Number, Text, Whole
from trainyard.model.cluster import (
    CPUS_PER_GPU,
    DEFAULT_GPU_TYPE,
    INTRA_GBPS,
    MEMORY_GB_PER_GPU,
    NETWORK_GBPS,
    STORAGE_MBPS,
    Cluster,
    GpuType,
    Node,
)

POSITIVE = Number(above=True)
CLUSTER_KEYS = ("name", "gpu_types", "nodes")
GPU_TYPE_KEYS = ("speed", "memory_gb")
NODE_KEYS = (
    *("count", "gpus", "gpu_type", "prefix", "cpus", "memory_gb"),
    *("network_gbps", "intra_gbps", "storage_mbps"),
)


def load_cluster(path: StrPath) -> Cluster:
    """Read a cluster file."""
    return read_cluster(load_document(path, "a cluster: name, gpu_types, nodes"))


def parse_cluster(data: object, where: str) -> Cluster:
    """Build a cluster from data as in a cluster file; `where` names its origin in errors."""
    return read_cluster(Section(data, where))


def read_cluster(section: Section) -> Cluster:
    """Build a cluster from a section of a file."""
    section.only(CLUSTER_KEYS)
    name = section.get("name", Text("lab"), "cluster")
    gpu_types = _gpu_types(section) if section.data.get("gpu_types") is not None else {}
    return Cluster(name, _nodes(section), gpu_types)


def _gpu_types(section: Section) -> dict[str, GpuType]:
    types = section.section("gpu_types")
    names = [types.key_text(key) for key in types.data]
    return {name: _gpu_type(name, types.section(name)) for name in names}


def _gpu_type(name: str, entry: Section) -> GpuType:
    entry.only(GPU_TYPE_KEYS)
    default = GpuType(name)
    speed = entry.get("speed", POSITIVE, default.speed)
    return GpuType(name, speed, entry.get("memory_gb", POSITIVE, default.memory_gb))


def _nodes(section: Section) -> tuple[Node, ...]:
    if section.data.get("nodes") in (None, []):
        raise section.error("there are no nodes; list at least one, such as {count: 4, gpus: 8}", "nodes")
    nodes: list[Node] = []
    numbers: Counter[str] = Counter()
    gpus = 0
    for entry in section.sections("nodes"):
        gpus += _entry_gpus(entry)
        if gpus > MAX_GPUS:
            raise entry.error(f"the cluster has {gpus} GPUs so far; it must have at most {MAX_GPUS}", "count")
        nodes.extend(_expand(entry, numbers))
    return tuple(nodes)


def _entry_gpus(entry: Section) -> int:
    entry.only(NODE_KEYS)
    return entry.need("count", Whole()) * entry.need("gpus", Whole())


def _expand(entry: Section, numbers: Counter[str]) -> Iterator[Node]:
    """Make the nodes of one entry; numbering continues over entries of the same prefix."""
    gpus = entry.need("gpus", Whole())
    gpu_type = entry.get("gpu_type", Text("V100"), DEFAULT_GPU_TYPE)
    prefix = entry.get("prefix", Text("rack1"), gpu_type)
    cpus = entry.get("cpus", POSITIVE, CPUS_PER_GPU * gpus)
    memory_gb = entry.get("memory_gb", POSITIVE, MEMORY_GB_PER_GPU * gpus)
    network = entry.get("network_gbps", POSITIVE, NETWORK_GBPS)
    intra = entry.get("intra_gbps", POSITIVE, INTRA_GBPS)
    storage = entry.get("storage_mbps", POSITIVE, STORAGE_MBPS)
    for _ in range(entry.need("count", Whole())):
        yield Node(f"{prefix}-{numbers[prefix]}", gpu_type, gpus, cpus, memory_gb, network, intra, storage)
        numbers[prefix] += 1
