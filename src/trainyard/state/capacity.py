"""Workers by GPU type: what jobs hold and held, and what there is."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot


def held_mix(snapshot: Snapshot) -> Ints:
    """Workers of every active job (rows of the table) on each GPU type."""
    nodes, row_of = snapshot.nodes, snapshot.table.row_of
    mix: Ints = np.zeros((len(snapshot.table), len(nodes.types)), dtype=np.int64)
    for job_id, allocation in snapshot.target.items():
        mix[row_of[job_id]] = nodes.workers_by_type(allocation)
    return mix


def up_by_type(snapshot: Snapshot, held: Ints) -> Ints:
    """GPUs of each type on all nodes that are not down, given what jobs hold."""
    nodes = snapshot.nodes
    free = np.bincount(nodes.type, weights=snapshot.free.gpus, minlength=len(nodes.types))
    there: Ints = free.astype(np.int64) + held.sum(axis=0)
    return there


def seconds_by_type(snapshot: Snapshot, held: Ints) -> Floats:
    """Seconds that every active job (rows of the table) has run on each GPU type so far.

    The time of a job that holds GPUs of several types counts for each in proportion to its workers there.
    """
    table = snapshot.table
    seconds: Floats = np.zeros(held.shape)
    if held.shape[1] == 1:
        seconds[:, 0] = snapshot.executed_s()
        return seconds
    for job_id, before in snapshot.observed.type_s.items():
        seconds[table.row_of[job_id]] = before
    spent = snapshot.now_s - table.column(Column.GIVEN_SINCE)
    seconds += held * (spent / np.maximum(held.sum(axis=1), 1))[:, None]
    return seconds
