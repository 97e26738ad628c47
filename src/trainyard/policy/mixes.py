"""Workers by GPU type: what jobs hold, and what there is."""

from __future__ import annotations

import numpy as np

from trainyard.model.cluster import Ints
from trainyard.policy.snapshot import Snapshot


def held_mix(snapshot: Snapshot) -> Ints:
    """Workers of every active job (rows of the table) on each GPU type."""
    nodes, row_of = snapshot.nodes, snapshot.table.row_of
    type_of, index = nodes.type.tolist(), nodes.index
    mix: Ints = np.zeros((len(snapshot.table), len(nodes.types)), dtype=np.int64)
    for job_id, allocation in snapshot.running.items():
        row = row_of[job_id]
        for share in allocation.shares:
            mix[row, type_of[index[share.node]]] += share.gpus
    return mix


def up_by_type(snapshot: Snapshot, held: Ints) -> Ints:
    """GPUs of each type on all nodes that are not down, given what jobs hold."""
    nodes = snapshot.nodes
    free = np.bincount(nodes.type, weights=snapshot.free.gpus, minlength=len(nodes.types))
    there: Ints = free.astype(np.int64) + held.sum(axis=0)
    return there
