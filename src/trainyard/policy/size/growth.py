"""The one greedy grower: smallest sizes while there is room, then the best step of any job, again and again.

Room, and what jobs take of it, are amounts of the same resources in the same order: GPUs, CPUs and memory as
parts of the cluster, or whatever else is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from operator import sub
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.kind import Kind
from trainyard.model.tolerance import PART
from trainyard.state.beliefs import Beliefs
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column

S = TypeVar("S")  # a size, in whatever form
T = TypeVar("T", bound=tuple[Any, ...])
Amounts = tuple[float, ...]
Counts = tuple[int, int]  # workers and servers
Growth = tuple[float, Amounts, S]  # its rank, the least first; what it takes; the size that it leads to

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
        """Return what these workers and servers take."""
        workers, servers = tasks
        (gpus, cpus, memory), (more_gpus, more_cpus, more_memory) = self.worker, self.server
        return (
            workers * gpus + servers * more_gpus,
            workers * cpus + servers * more_cpus,
            workers * memory + servers * more_memory,
        )


def growers_of(beliefs: Beliefs, ranked: Ints) -> list[Grower]:
    """Return what each ranked job could become; jobs that are alike share their speeds."""
    table, rows = beliefs.snapshot.table, ranked.tolist()
    jobs, weights = [table.jobs[row] for row in rows], table.column(Column.WEIGHT)[ranked].tolist()
    known: dict[int, tuple[Floats, Floats]] = {}  # by id; what it is the id of is kept, so that it stays that
    growers = []
    tasks = tasks_of(jobs, up_capacity(beliefs.snapshot))
    for row, job, each, weight in zip(rows, jobs, tasks, weights, strict=True):
        apart = beliefs.apart(row)
        speeds = beliefs.surface(row) if apart else beliefs.curve(row)
        found = known.get(id(speeds))
        if found is None:
            found = known[id(speeds)] = speeds, speeds.reshape(len(speeds), -1)
        growers.append(Grower(found[1], (job.least_gpus, int(apart)), *each, weight))
    return growers


def tasks_of(jobs: Iterable[Job], total: Amounts) -> list[tuple[Amounts, Amounts]]:
    """Return the parts that a worker of each job takes, and a server if these hold resources of their own."""
    known: dict[Kind, tuple[Amounts, Amounts]] = {}
    tasks = []
    for job in jobs:
        found = known.get(job.kind)
        if found is None:
            found = known[job.kind] = _tasks_of(job, total)
        tasks.append(found)
    return tasks


def _tasks_of(job: Job, total: Amounts) -> tuple[Amounts, Amounts]:
    """A worker that does not say what CPUs or memory it needs takes the same part of them as of the GPUs."""
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


def in_turn(needs: Sequence[Amounts], room: Amounts) -> tuple[list[int], Amounts]:
    """Return which find room, the first ones first, and what is left; others are passed over."""
    left = without(room, tuple(map(sum, zip(*needs, strict=True))))
    if needs and min(left) >= 0:  # all of them: no need to look at each
        return list(range(len(needs))), left
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
    """Return the sizes of all jobs as an array, `none` for those that have no size."""
    table = np.array([sizes.get(i, none) for i in range(count)], dtype=np.int64)
    return table.reshape(count, *np.array(none).shape)


def grow(
    sizes: Mapping[int, S],
    room: Amounts,
    next_step: Callable[[int, S, Amounts], Growth[S] | None],
    again: bool = False,
) -> dict[int, S]:
    """Take the step of least rank of all jobs that have a size, again and again; return their sizes then.

    `next_step(i, size, room)` is the next step of job i, None if it has enough. A job whose step does not fit
    has enough too; with `again` it is asked once more, for the best step that fits in what is left.
    """
    grown = dict(sizes)

    def take(i: int, step: Growth[S]) -> Growth[S] | None:
        nonlocal room
        _, takes, size = step
        left = tuple(map(sub, room, takes))
        if min(left) >= 0:  # room only shrinks, so what still fits is still the best
            room, grown[i] = left, size
            return next_step(i, size, room)
        return next_step(i, grown[i], room) if again else None

    best_first([(i, step) for i, size in sizes.items() if (step := next_step(i, size, room))], take)
    return grown


def best_first(steps: Iterable[tuple[int, T]], take: Callable[[int, T], T | None]) -> None:
    """Let the job whose step has the least rank take it, the first of equals, until no job has a step.

    A step is a tuple that begins with its rank. `take(i, step)` takes it if it can, and returns the next.
    """
    heap = [(step[0], i, step) for i, step in steps]
    heapify(heap)
    while heap:
        _, i, step = heap[0]
        following = take(i, step)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], i, following))
