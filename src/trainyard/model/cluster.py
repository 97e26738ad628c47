"""Clusters: nodes with GPUs of one type, CPUs, memory, network and storage bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trainyard.model.allocation import Allocation, Part, Share
from trainyard.model.arrays import Floats, Ints
from trainyard.model.reservation import Reservation
from trainyard.model.shape import Shape
from trainyard.model.tenant import Tenant

# What a node gets when its file does not say: the server of the Synergy paper (8 GPUs, 24 CPUs, 500 GB),
# per GPU, with the network of the cluster file's example.
DEFAULT_GPU_TYPE = "GPU"
CPUS_PER_GPU = 3.0
MEMORY_GB_PER_GPU = 62.5
NETWORK_GBPS = 10.0
INTRA_GBPS = 100.0
STORAGE_MBPS = 500.0


@dataclass(frozen=True, slots=True)
class GpuType:
    """A kind of GPU: its speed relative to 1.0 and its memory."""

    name: str
    speed: float = 1.0
    memory_gb: float = 16.0


@dataclass(frozen=True, slots=True)
class Node:
    """One machine."""

    node_id: str
    gpu_type: str
    gpus: int
    cpus: float
    memory_gb: float
    network_gbps: float = NETWORK_GBPS
    intra_gbps: float = INTRA_GBPS
    storage_mbps: float = STORAGE_MBPS


@dataclass(frozen=True, slots=True)
class Cluster:
    """All nodes, and what is known of their GPU types."""

    name: str
    nodes: tuple[Node, ...]
    gpu_types: Mapping[str, GpuType] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()

    @property
    def gpus(self) -> int:
        """All GPUs of the cluster."""
        return sum(node.gpus for node in self.nodes)

    def speed_of(self, gpu_type: str) -> float:
        """Relative speed of a GPU type; a type that is not listed has speed 1.0."""
        known = self.gpu_types.get(gpu_type)
        return known.speed if known else 1.0


def uniform_cluster(
    nodes: int, gpus: int = 8, gpu_type: str = DEFAULT_GPU_TYPE, name: str = "cluster"
) -> Cluster:
    """Build a cluster of identical nodes with the default CPUs, memory and bandwidths."""
    return Cluster(
        name,
        tuple(
            Node(f"{gpu_type}-{i}", gpu_type, gpus, CPUS_PER_GPU * gpus, MEMORY_GB_PER_GPU * gpus)
            for i in range(nodes)
        ),
    )


class NodeTable:
    """A cluster as arrays, one entry per node, for code that looks at all nodes at once."""

    def __init__(self, cluster: Cluster) -> None:
        nodes = cluster.nodes
        self.cluster = cluster
        self.ids: list[str] = [n.node_id for n in nodes]
        self.index: dict[str, int] = {n.node_id: i for i, n in enumerate(nodes)}
        self.types: list[str] = list(dict.fromkeys(n.gpu_type for n in nodes))
        self.type_index: dict[str, int] = {t: i for i, t in enumerate(self.types)}
        self.speeds: Floats = np.array([cluster.speed_of(t) for t in self.types], dtype=np.float64)
        self.type: Ints = np.array([self.type_index[n.gpu_type] for n in nodes], dtype=np.int64)
        self.type_of: list[int] = self.type.tolist()  # the same as plain numbers
        self.gpus: Ints = np.array([n.gpus for n in nodes], dtype=np.int64)
        self.cpus: Floats = np.array([n.cpus for n in nodes], dtype=np.float64)
        self.memory_gb: Floats = np.array([n.memory_gb for n in nodes], dtype=np.float64)
        kinds: dict[tuple[object, ...], int] = {}  # nodes that differ in nothing but their names
        alike = [(n.gpu_type, n.gpus, n.cpus, n.memory_gb, n.network_gbps, n.storage_mbps) for n in nodes]
        self.kind: Ints = np.array([kinds.setdefault(a, len(kinds)) for a in alike], dtype=np.int64)
        per_gpu = np.maximum(self.gpus, 1)
        self.cpus_per_gpu: Floats = self.cpus / per_gpu
        self.memory_per_gpu: Floats = self.memory_gb / per_gpu
        # The same (CPUs, GB) as plain numbers, for code that looks at one node at a time.
        self.share_per_gpu: list[tuple[float, float]] = list(
            zip(self.cpus_per_gpu.tolist(), self.memory_per_gpu.tolist(), strict=True)
        )
        self.proportional = Proportional(self)
        self.mask_of_type: list[int] = [0] * len(self.types)  # bit i: node i has this type
        for i, type_ in enumerate(self.type.tolist()):
            self.mask_of_type[type_] |= 1 << i
        self.gpus_of_type: Ints = np.bincount(self.type, weights=self.gpus, minlength=len(self.types)).astype(
            np.int64
        )

    def parts(self, allocation: Allocation) -> list[Part]:
        """What an allocation holds by the nodes' indices."""
        index = self.index
        return [(index[node], gpus, cpus, gb) for node, gpus, _, cpus, gb in allocation.shares]

    def workers_by_type(self, allocation: Allocation) -> list[int]:
        """GPUs of each type that an allocation holds."""
        counts = [0] * len(self.types)
        for share in allocation.shares:
            counts[self.type_of[self.index[share.node]]] += share.gpus
        return counts

    def shape_of(self, allocation: Allocation) -> Shape:
        """How big an allocation is: its workers by GPU type, in the order of its nodes, and its servers."""
        counts: dict[str, int] = {}
        for share in allocation.shares:
            gpu_type = self.types[self.type_of[self.index[share.node]]]
            counts[gpu_type] = counts.get(gpu_type, 0) + share.gpus
        workers = tuple((gpu_type, gpus) for gpu_type, gpus in counts.items() if gpus)
        return Shape(workers, allocation.servers)

    def plain(self, parts: list[tuple[int, int]]) -> Allocation:
        """So many GPUs of each of these nodes, each with its node's share of CPUs and memory."""
        known = self.proportional
        if len(parts) == 1:
            return known[parts[0]]
        each = [known[part] for part in parts]
        return Allocation(tuple([one.shares[0] for one in each]), tuple([one.plain[0] for one in each]))

    def is_proportional(self, allocation: Allocation) -> bool:
        """Whether every GPU comes with its node's share of CPUs and memory, and with nothing else."""
        for node, gpus, _, cpus, memory_gb in allocation.shares:
            cpus_each, memory_each = self.share_per_gpu[self.index[node]]
            if cpus != gpus * cpus_each or memory_gb != gpus * memory_each:
                return False
        return True


class Proportional(dict[tuple[int, int], Allocation]):
    """Some GPUs of one node with their share of it, by (node, GPUs): made once, when first asked for."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__()
        self._ids, self._share_per_gpu = nodes.ids, nodes.share_per_gpu

    def __missing__(self, part: tuple[int, int]) -> Allocation:
        i, gpus = part
        cpus, memory_gb = self._share_per_gpu[i]
        share = Share(self._ids[i], gpus, 0, gpus * cpus, gpus * memory_gb)
        found = self[part] = Allocation((share,), ((i, gpus, share.cpus, share.memory_gb),))
        return found


def by_speed(nodes: NodeTable) -> list[int]:
    """GPU types, fastest first."""
    return sorted(range(len(nodes.types)), key=lambda t: -float(nodes.speeds[t]))
