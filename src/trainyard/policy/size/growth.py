"""What one worker and one parameter server take, as parts of the whole cluster."""

from __future__ import annotations

from trainyard.model.job import Job
from trainyard.state.snapshot import Snapshot

Vector = tuple[float, float, float]  # GPUs, CPUs and memory
NOTHING: Vector = (0.0, 0.0, 0.0)
TINY = 1e-9
ALL: Vector = (1.0 + TINY, 1.0 + TINY, 1.0 + TINY)  # the cluster, rounding allowed for


def capacity(snapshot: Snapshot) -> Vector:
    """GPUs, CPUs and memory of the cluster; of nothing there is none."""
    nodes = snapshot.nodes
    return (
        max(float(snapshot.up_gpus), 1.0),
        max(float(nodes.cpus.sum()), TINY),
        max(float(nodes.memory_gb.sum()), TINY),
    )


def tasks_of(job: Job, total: Vector) -> tuple[Vector, Vector]:
    """Parts that one worker takes, and one server if these hold resources of their own.

    A worker that does not say what CPUs or memory it needs takes the same part of them as of the GPUs.
    """
    gpu = 1.0 / total[0]
    cpus, memory_gb = job.asked_per_gpu
    worker = (
        gpu,
        gpu if cpus is None else cpus / total[1],
        gpu if memory_gb is None else memory_gb / total[2],
    )
    server = job.profile.server if job.profile is not None and job.profile.apart else None
    if server is None:
        return worker, NOTHING
    return worker, (0.0, server.cpus / total[1], server.memory_gb / total[2])


def without(room: Vector, each: Vector, count: int) -> Vector:
    """What is left when some tasks are taken; below zero if they do not fit."""
    return room[0] - count * each[0], room[1] - count * each[1], room[2] - count * each[2]
