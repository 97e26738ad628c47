"""Densest packing: on how many nodes some GPUs of a type fit, and the share of the nodes that goes with them.

Nodes of a type are filled one after the other, those with most GPUs first. With each GPU goes its part of the
node's CPUs, memory and storage bandwidth. More GPUs than the cluster has count as if the last node went on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Node


class Packed(NamedTuple):
    """What each of n numbers of GPUs of one type takes."""

    nodes: Ints
    cpus: Floats
    memory_gb: Floats
    storage_mbps: Floats
    network_gbps: Floats  # the slowest of the nodes; infinite for no nodes
    intra_gbps: Floats  # of the first node


class Packing:
    """The nodes of one GPU type, in the order they are filled."""

    def __init__(self, nodes: list[Node]) -> None:
        order = sorted((n for n in nodes if n.gpus > 0), key=lambda n: -n.gpus)
        self._gpus: Ints = np.array([n.gpus for n in order], dtype=np.int64)
        self._ends: Ints = np.cumsum(self._gpus)
        self._starts: Ints = self._ends - self._gpus
        held = np.array([(n.cpus, n.memory_gb, n.storage_mbps) for n in order], dtype=np.float64).reshape(
            -1, 3
        )
        self._before: Floats = np.cumsum(held, axis=0) - held
        self._per_gpu: Floats = held / self._gpus[:, None]
        self._network: Floats = np.minimum.accumulate(
            np.array([n.network_gbps for n in order], dtype=np.float64)
        )
        self._intra = order[0].intra_gbps if order else np.inf

    def of(self, gpus: Ints) -> Packed:
        """Pack each number of GPUs as if it were alone in the cluster."""
        none = np.zeros(len(gpus))
        if not len(self._gpus):
            return Packed(np.zeros_like(gpus), none, none, none, none + np.inf, none + np.inf)
        last = np.minimum(np.searchsorted(self._ends, gpus, side="left"), len(self._gpus) - 1)
        rest = gpus - self._starts[last]
        nodes = last + -(-rest // self._gpus[last])
        held = self._before[last] + rest[:, None] * self._per_gpu[last]
        network = np.where(gpus > 0, self._network[last], np.inf)
        return Packed(nodes, held[:, 0], held[:, 1], held[:, 2], network, none + self._intra)
