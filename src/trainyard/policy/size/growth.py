"""The one greedy grower: smallest sizes while there is room, then the best step of any job, again and again.

Room, and what jobs take of it, are amounts of the same resources in the same order: GPUs, CPUs and memory as
parts of the cluster, or whatever else is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from operator import sub
from typing import NamedTuple, TypeVar

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.tolerance import PART
from trainyard.state.beliefs import Beliefs
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column

S = TypeVar("S")  # a size, in whatever form
Amounts = tuple[float, ...]
Counts = tuple[int, int]  # workers and servers
Step = tuple[float, Amounts, S]  # its rank, the least first; what it takes; the size that it leads to

NONE: Counts = (0, 0)
NOTHING: Amounts = (0.0, 0.0, 0.0)
ALL: Amounts = (1.0 + PART, 1.0 + PART, 1.0 + PART)  # the cluster, rounding allowed for


class Grower(NamedTuple):
    """One job that can grow by workers and servers."""

    speeds: Floats  # samples/s by workers (rows) and servers, up to the most it may have
    least: Counts
    worker: Amounts
    server: Amounts
    weight: float = 1.0

    def takes(self, tasks: Counts) -> Amounts:
        """Return what so many workers and servers take."""
        workers, servers = tasks
        (gpus, cpus, memory), (more_gpus, more_cpus, more_memory) = self.worker, self.server
        return (
            workers * gpus + servers * more_gpus,
            workers * cpus + servers * more_cpus,
            workers * memory + servers * more_memory,
        )


def growers_of(beliefs: Beliefs, ranked: Ints) -> list[Grower]:
    """Return what each ranked job could become; jobs that are alike share their speeds."""
    table, total = beliefs.snapshot.table, up_capacity(beliefs.snapshot)
    weights = table.column(Column.WEIGHT)[ranked].tolist()
    known: dict[int, tuple[Floats, Floats]] = {}  # by id; what it is the id of is kept, so that it stays that
    growers = []
    for row, weight in zip(ranked.tolist(), weights, strict=True):
        job, apart = table.jobs[row], beliefs.apart(row)
        speeds = beliefs.surface(row) if apart else beliefs.curve(row)
        found = known.get(id(speeds))
        if found is None:
            found = known[id(speeds)] = speeds, speeds.reshape(len(speeds), -1)
        growers.append(Grower(found[1], (job.least_gpus, int(apart)), *tasks_of(job, total), weight))
    return growers


def tasks_of(job: Job, total: Amounts) -> tuple[Amounts, Amounts]:
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


def without(room: Amounts, takes: Amounts) -> Amounts:
    """What is left of the room; below zero if it is not enough."""
    return tuple(map(sub, room, takes))


def in_turn(needs: Iterable[Amounts], room: Amounts) -> tuple[list[int], Amounts]:
    """Return who finds room, the first ones first, and what is left; who does not fit is passed over."""
    served = []
    for i, need in enumerate(needs):
        left = without(room, need)
        if min(left) >= 0:
            room = left
            served.append(i)
    return served, room


def smallest(growers: Sequence[Grower]) -> tuple[dict[int, Counts], Amounts]:
    """Return the smallest sizes of all that find room for theirs, the first ones first, and what is left."""
    served, room = in_turn([grower.takes(grower.least) for grower in growers], ALL)
    return {i: growers[i].least for i in served}, room


def all_sizes(sizes: Mapping[int, S], none: S, count: int) -> Ints:
    """Return the sizes of so many jobs as an array, `none` for those that have no size."""
    table = np.array([sizes.get(i, none) for i in range(count)], dtype=np.int64)
    return table.reshape(count, *np.array(none).shape)


def grow(
    sizes: dict[int, S], room: Amounts, next_step: Callable[[int, S, Amounts], Step[S] | None]
) -> dict[int, S]:
    """Take the step of least rank of all jobs that have a size, again and again; return their sizes then.

    `next_step(i, size, room)` is the next step of job i, None if it has enough. It may look for the best that
    fits in what is left, or not: a job whose step does not fit, and that proposes no other, has enough too.
    """
    sizes = sizes.copy()
    steps = {i: step for i, size in sizes.items() if (step := next_step(i, size, room)) is not None}

    def take(i: int) -> float | None:
        nonlocal room
        _, takes, size = steps[i]
        left = without(room, takes)
        fits = min(left) >= 0
        if fits:  # room only shrinks, so what still fits is still the best
            room, sizes[i] = left, size
        step = next_step(i, sizes[i], room)
        if step is None or not (fits or step[1] != takes):
            return None
        steps[i] = step
        return step[0]

    best_first([(step[0], i) for i, step in steps.items()], take)
    return sizes


def best_first(heap: list[tuple[float, int]], take: Callable[[int], float | None]) -> None:
    """Let whoever has the least rank take a step, the first of equals, until nobody is left.

    `take(i)` takes the step of i, if it can, and returns the rank of its next one, None to leave.
    """
    heapify(heap)
    while heap:
        i = heap[0][1]
        rank = take(i)
        if rank is None:
            heappop(heap)
        else:
            heapreplace(heap, (rank, i))
