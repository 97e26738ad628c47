"""Size stage: dominant resource fairness that asks the speed model what to add, looking a few tasks ahead.

Every job starts with its fewest workers and one server. Then, again and again, the job with the smallest
weighted dominant share takes those of its next tasks, up to five workers and servers in any mixture, that
bring most speed per task. A job that no such step makes faster, or for which none fits, has enough. One task
at a time would stop too early: the second server may bring nothing and the third a lot.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.growth import ALL, Vector, capacity, tasks_of, without
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.stages import Size, Sizes
from trainyard.state.beliefs import Beliefs, Told
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
Numbers = tuple[int, int]  # workers and servers
NEVER: Numbers = (0, 0)


class Grower(NamedTuple):
    """One job that can grow."""

    speeds: Floats  # samples/s by workers (rows) and servers, up to the most it may have
    least: Numbers
    worker: Vector
    server: Vector
    weight: float = 1.0

    def share(self, size: Numbers) -> float:
        """Weighted dominant share of the cluster at this size."""
        return (
            -min(without(without((0.0, 0.0, 0.0), self.worker, size[0]), self.server, size[1])) / self.weight
        )


class Lookahead(Size):
    """Gives the job with the smallest dominant share its best next tasks, up to `ahead` at once."""

    def __init__(self, ahead: int = 5, hysteresis: bool = True) -> None:
        self.ahead = ahead
        self.hysteresis = hysteresis

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes:
        """Return GPUs and servers for each ranked row."""
        beliefs = Told(snapshot)
        target = look_ahead(growers_of(beliefs, ranked), self.ahead)
        gpus, servers = target[:, 0], target[:, 1]
        if self.hysteresis:
            settle(beliefs, ranked, gpus, frozenset(), servers)
        return Sizes(gpus, servers)


def look_ahead(growers: list[Grower], ahead: int) -> Ints:
    """Return workers and servers of each job, none to wait; earlier jobs come first when room is short."""
    steps = Steps(ahead)
    room, sizes = smallest(growers)
    heap = [(growers[i].share(size), i) for i, size in enumerate(sizes) if size != NEVER]
    heapq.heapify(heap)
    while heap:
        i = heap[0][1]
        grower, size = growers[i], sizes[i]
        more = steps.best(grower, size, room)
        if more == NEVER:
            heapq.heappop(heap)
            continue
        room = after(room, grower, more)
        sizes[i] = size = (size[0] + more[0], size[1] + more[1])
        heapq.heapreplace(heap, (grower.share(size), i))
    return np.array(sizes, dtype=np.int64).reshape(-1, 2)


def smallest(growers: list[Grower]) -> tuple[Vector, list[Numbers]]:
    """Give each job its smallest size while there is room; return what is left of it, and the sizes."""
    room, sizes = ALL, [NEVER] * len(growers)
    for i, grower in enumerate(growers):
        left = after(room, grower, grower.least)
        if min(left) >= 0:
            room, sizes[i] = left, grower.least
    return room, sizes


class Steps:
    """Finds the best step of a job, and remembers it for all that are alike."""

    def __init__(self, ahead: int) -> None:
        self.reach = ahead + 1
        self.workers, self.servers = np.indices((self.reach, self.reach, 1))[:2]
        added = (self.workers + self.servers)[:, :, 0]
        self.per_task: Floats = np.where((added > 0) & (added <= ahead), 1.0 / np.maximum(added, 1), 0.0)
        self._known: dict[tuple[int, Numbers], Numbers] = {}

    def best(self, grower: Grower, size: Numbers, room: Vector) -> Numbers:
        """Return how many workers and servers bring most speed per task, none if nothing does or fits."""
        key = (id(grower.speeds), size)
        more = self._known.get(key)
        if more is None:
            gains = self._gains(grower, size)
            more = self._known[key] = _largest(gains)
        if min(after(room, grower, more)) >= 0:
            return more
        gains = self._gains(grower, size)
        takes = self.workers * grower.worker + self.servers * grower.server
        gains *= (takes <= room).all(axis=2)[: gains.shape[0], : gains.shape[1]]
        return _largest(gains)

    def _gains(self, grower: Grower, size: Numbers) -> Floats:
        """Speed gained per task, by workers and servers added."""
        near = grower.speeds[size[0] : size[0] + self.reach, size[1] : size[1] + self.reach]
        gains: Floats = (near - near[0, 0]) * self.per_task[: near.shape[0], : near.shape[1]]
        return gains


def _largest(gains: Floats) -> Numbers:
    """Where the largest gain is; the first of equals, nowhere if there is none."""
    at = int(gains.argmax())
    workers, servers = divmod(at, gains.shape[1])
    return (workers, servers) if gains.item(at) > 0 else NEVER


def after(room: Vector, grower: Grower, tasks: Numbers) -> Vector:
    """What is left of the room when a job takes these tasks."""
    return without(without(room, grower.worker, tasks[0]), grower.server, tasks[1])


def growers_of(beliefs: Beliefs, ranked: Ints) -> list[Grower]:
    """Return what each ranked job could become."""
    jobs, total = beliefs.snapshot.table.jobs, capacity(beliefs.snapshot)
    weights = beliefs.snapshot.table.column(C.WEIGHT)[ranked].tolist()
    growers = []
    for row, weight in zip(ranked.tolist(), weights, strict=True):
        job, apart = jobs[row], beliefs.apart(row)
        speeds = beliefs.surface(row) if apart else beliefs.curve(row)[:, np.newaxis]
        growers.append(Grower(speeds, (job.least_gpus, int(apart)), *tasks_of(job, total), weight))
    return growers
