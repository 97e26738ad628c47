"""What the cluster has, as far as it is up, and what jobs hold and held of its GPU types."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import CPUS_GB
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot


def held_by_type(snapshot: Snapshot) -> Ints:
    """Workers of every active job (rows of the table) on each GPU type."""
    nodes, of = snapshot.nodes, snapshot.table.of
    mix: Ints = np.zeros((len(snapshot.table), len(nodes.types)), dtype=np.int64)
    for job_id, allocation in snapshot.target.items():
        mix[of[job_id].row] = nodes.workers_by_type(allocation)
    return mix


def up_capacity(snapshot: Snapshot) -> tuple[float, float, float]:
    """GPUs, CPUs and GB of memory of all nodes that are up; never 0, so that parts of them are numbers."""
    nodes, up = snapshot.nodes, snapshot.up
    return (
        max(float(snapshot.up_gpus), 1.0),
        max(float(nodes.cpus[up].sum()), CPUS_GB),
        max(float(nodes.memory_gb[up].sum()), CPUS_GB),
    )


def up_by_type(snapshot: Snapshot) -> Ints:
    """GPUs of each type on all nodes that are up."""
    nodes, up = snapshot.nodes, snapshot.up
    there = np.bincount(nodes.type[up], weights=nodes.gpus[up], minlength=len(nodes.types))
    return there.astype(np.int64)


def seconds_by_type(snapshot: Snapshot, held: Ints) -> Floats:
    """Seconds that every active job (rows of the table) has run on each GPU type so far.

    The time of a job that holds GPUs of several types counts for each in proportion to its workers there.
    """
    table = snapshot.table
    seconds: Floats = np.zeros(held.shape)
    if held.shape[1] == 1:
        seconds[:, 0] = snapshot.executed_s()
        return seconds
    for row, record in enumerate(table.records):
        if record.seen is not None and record.seen.type_s:
            seconds[row, : len(record.seen.type_s)] = record.seen.type_s
    spent = snapshot.now_s - table.column(Column.GIVEN_SINCE)
    seconds += held * (spent / np.maximum(held.sum(axis=1), 1))[:, None]
    return seconds
