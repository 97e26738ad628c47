"""Synergy-OPT, second linear program: on which nodes, in fractions of jobs.

    maximise  the jobs that stay where they are
    such that on each node the GPUs, CPUs and memory of the fractions it holds do not exceed its own,
              the fractions of each job sum to one

The paper's objective is constant; this one picks the answer that moves least. A vertex has at most three
split jobs per node, so most jobs are whole. Identical jobs are one class: of those that a node holds of it,
up to as many as run there now are counted as staying.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import ROUGH_PART
from trainyard.policy.tune.synergy.classes import Classes, Pieces, classes_of, deal
from trainyard.solve.program import Rows, maximise

MOST_CELLS = 100_000  # pairs (class, node): some seconds; beyond that a class may use only some of the nodes


@dataclass(frozen=True, slots=True)
class Fractions:
    """Which fraction of a job is on which node; only those above zero."""

    job: Ints
    node: Ints
    fraction: Floats


def place_shares(
    gpus: Ints,
    cpus: Floats,
    memory_gb: Floats,
    node_gpus: Ints,
    node_cpus: Floats,
    node_memory_gb: Floats,
    stay: Ints,
) -> Fractions | None:
    """Return where each job goes, or None if there is no room for the shares.

    `cpus` and `memory_gb` are per GPU; `stay` is the node that holds all of the job now, or -1. With more
    than MOST_CELLS pairs of classes and nodes, None may also mean that no answer was found.
    """
    classes = classes_of(np.column_stack([gpus, cpus, memory_gb]).astype(np.float64))
    demand = np.stack([gpus, gpus * cpus, gpus * memory_gb])[:, classes.first].astype(np.float64)
    room = np.stack([node_gpus, node_cpus * (1 + ROUGH_PART), node_memory_gb * (1 + ROUGH_PART)])
    nodes = node_gpus.size
    settled = stay >= 0
    staying, most = np.unique(classes.of[settled] * nodes + stay[settled], return_counts=True)
    cell = np.concatenate([staying, _cells(classes.size, nodes)])
    upper = np.full(cell.size, np.inf)
    upper[: staying.size] = most
    amount = _amounts(cell, upper, demand, room, classes.size)
    if amount is None:
        return None
    used, where = np.unique(cell, return_inverse=True)
    pieces = deal(used // nodes, np.bincount(where, amount).astype(np.float64), classes.size)
    node = used[pieces.cell] % nodes
    return Fractions(_jobs_of_slots(pieces, node, classes, stay)[pieces.slot], node, pieces.fraction)


def _amounts(cell: Ints, upper: Floats, demand: Floats, room: Floats, size: Ints) -> Floats | None:
    """How many jobs of its class each cell holds; those with an upper limit are the ones that stay."""
    nodes, variables = room.shape[1], np.arange(cell.size)
    class_, node = np.divmod(cell, nodes)
    rows = (np.arange(3)[:, None] * nodes + node).ravel()
    resources = Rows(rows, np.tile(variables, 3), demand[:, class_].ravel(), room.ravel())
    every_job = Rows(class_, variables, np.ones(cell.size), size.astype(np.float64))
    return maximise(np.isfinite(upper).astype(np.float64), resources, every_job, upper)


def _cells(size: Ints, nodes: int) -> Ints:
    """Return the pairs class * nodes + node to consider: all, or some random nodes for each class.

    Half of the pairs are shared out by classes and half by jobs: a large class needs many nodes.
    """
    classes = size.size
    if nodes * classes <= MOST_CELLS:
        return np.arange(nodes * classes)
    width = MOST_CELLS / 2 * (1 / classes + size / size.sum())
    shuffled = np.random.default_rng(0).random((classes, nodes)).argsort(axis=1)
    cells: Ints = (np.arange(classes)[:, None] * nodes + shuffled)[np.arange(nodes) < width[:, None]]
    return cells


def _jobs_of_slots(pieces: Pieces, node: Ints, classes: Classes, stay: Ints) -> Ints:
    """Return the job of each slot: one that is already where most of the slot is, if there is any."""
    largest = np.lexsort((-pieces.fraction, pieces.slot))
    _, head = np.unique(pieces.slot[largest], return_index=True)
    settled = np.flatnonzero(stay >= 0)
    slot_key = _numbered(np.sort(classes.of), node[largest][head])
    job_key = _numbered(classes.of[settled], stay[settled])
    _, slots, stayers = np.intersect1d(slot_key, job_key, return_indices=True)
    job_of: Ints = np.full(stay.size, -1)
    job_of[slots] = settled[stayers]
    others = classes.of.argsort(kind="stable")
    job_of[job_of < 0] = others[~np.isin(others, job_of)]
    return job_of


def _numbered(class_: Ints, node: Ints) -> Ints:
    """One key per (class, node, place among those of the same class and node)."""
    order = np.lexsort((node, class_))
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (np.diff(class_[order]) != 0) | (np.diff(node[order]) != 0)
    place = np.arange(order.size)
    key = np.empty_like(order)
    key[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return (class_ << 42) | (node << 21) | key
