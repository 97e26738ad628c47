"""Gangs of the size that jobs ask for, all workers on one GPU type: how fast, and what they take.

Each job has one option per GPU type. A gang that no type could ever hold has a single option, which takes the
fastest types first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import NodeTable, by_speed
from trainyard.model.job import Job
from trainyard.model.tolerance import COUNT
from trainyard.policy.menus import Menu, menus_of
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


class Options(NamedTuple):
    """Options of some jobs."""

    speed: Floats  # (jobs, options): samples/s; 0 where there is no such option
    use: Ints  # (jobs, options, types): GPUs that each takes


def options_of(snapshot: Snapshot, ranked: Ints, capacity: Ints) -> Options:
    """Options of the ranked jobs within the capacity of the cluster."""
    types, menus = capacity.size, menus_of(snapshot, ranked, capacity, gangs)
    speed = np.array([menu.speed for menu in menus.kinds]).reshape(-1, types)
    use = np.array([menu.by_type for menu in menus.kinds], dtype=np.int64).reshape(-1, types, types)
    return Options(speed[menus.of], use[menus.of])


def room_for(job: Job, own_type: int, nodes: NodeTable, capacity: Ints) -> Ints:
    """GPUs of each type that a job could use at most, given the CPUs and memory it wants with each."""
    room = capacity
    if job.particular:
        beside = nodes.gpus.astype(np.float64)
        for asked, there in zip(job.asked_per_gpu, (nodes.cpus, nodes.memory_gb), strict=True):
            if asked:
                beside = np.minimum(beside, np.floor(there / asked + COUNT))
        most = np.bincount(nodes.type, weights=beside, minlength=capacity.size).astype(np.int64)
        room = np.minimum(room, most)
    if own_type >= 0:
        room = np.where(np.arange(capacity.size) == own_type, room, 0)
    return room


def gangs(snapshot: Snapshot, record: Record, capacity: Ints) -> Menu:
    """Return the menu of a job that runs with the GPUs that it asked for: a row for each type."""
    job, nodes, types = record.job, snapshot.nodes, capacity.size
    speed: Floats = np.zeros(types)
    use: Ints = np.zeros((types, types), dtype=np.int64)
    room = room_for(job, record.type_index, nodes, capacity)
    for t in np.flatnonzero(room >= job.gpus).tolist():
        use[t, t] = job.gpus
        speed[t] = snapshot.speed.curve(job, t, job.gpus)[job.gpus]
    at_best = room_for(job, record.type_index, nodes, nodes.gpus_of_type)
    if at_best.max() < job.gpus <= room.sum():
        use[0] = _fastest_first(job.gpus, room, nodes)
        shapes = snapshot.speed.proportional(use[:1], np.array([job.servers]))
        speed[0] = snapshot.speed.speeds(job, shapes)[0]
    return Menu(use, speed)


def _fastest_first(gpus: int, room: Ints, nodes: NodeTable) -> Ints:
    mix: Ints = np.zeros_like(room)
    for t in by_speed(nodes):
        mix[t] = min(int(room[t]), gpus - int(mix.sum()))
    return mix
