"""Many candidate shapes at once, as arrays: what the speed model is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Shapes:
    """What n candidates hold. Columns of `workers` are GPU types in the order of `NodeTable.types`."""

    workers: Ints  # (n, types)
    servers: Ints
    nodes: Ints  # nodes spanned
    bandwidth_gbps: Floats  # that gradients get: inside the node if there is one, else the network
    cpus: Floats
    memory_gb: Floats
    storage_mbps: Floats

    def __len__(self) -> int:
        return len(self.servers)
