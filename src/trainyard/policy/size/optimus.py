"""Size stage: Optimus (Peng et al., EuroSys'18), one worker or one parameter server at a time.

Every job starts with its fewest workers and one server; then the one task that saves most time for its
dominant share of the cluster is added, again and again, as long as it saves any and there is room. Jobs
without parameter servers get workers only. With `mode=learn` nothing is known in advance: a new job first
tries a few sizes, its speed is fitted to what was seen, and its end is predicted from the losses it reports.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from trainyard.model.allocation import Wakes
from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.growth import ALL, TINY, Vector, capacity, tasks_of, without
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.size.trials import explorer_for
from trainyard.policy.stages import Changes, Size, Sizes
from trainyard.state.beliefs import MOST_SERVERS, Beliefs, Learned, Told
from trainyard.state.snapshot import Snapshot

Numbers = tuple[int, int]  # workers and servers
# (workers, servers) to learn from: with five points all coefficients of the speed function can be told apart.
RING_TRIALS = (1, 2, 4, 8)
SERVER_TRIALS = ((1, 1), (2, 2), (2, 1), (1, 2), (4, 2))


class Growth(NamedTuple):
    """One job that can grow: what a sample costs at every size, and what it takes."""

    left: float  # samples
    pace: Floats  # seconds per sample by workers (rows) and servers
    least: Numbers
    most: Numbers
    worker: Vector
    server: Vector
    trial: Numbers | None = None  # the size it has to try now


class Optimus(Size):
    """Adds the task that saves most time per dominant share of the cluster."""

    def __init__(
        self,
        mode: Literal["told", "learn"] = "told",
        hysteresis: bool = True,
        explore_s: float | None = None,
    ) -> None:
        self.explorer = explorer_for(mode == "learn", explore_s, "mode=learn")
        self.hysteresis = hysteresis

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes:
        """Return GPUs and servers for each ranked row."""
        beliefs: Beliefs = Told(snapshot) if self.explorer is None else Learned(snapshot, losses=True)
        trials = self._trials(beliefs, ranked)
        growths = growths_of(beliefs, ranked, trials)
        target = grow(growths)
        gpus, servers = target[:, 0], target[:, 1]
        if self.hysteresis:
            on_trial = frozenset(j for j, growth in enumerate(growths) if growth.trial == tuple(target[j]))
            settle(beliefs, ranked, gpus, on_trial, servers)
        return Sizes(gpus, servers)

    def wakes(self, snapshot: Snapshot, changes: Changes) -> Wakes:
        """Return when trials end."""
        return () if self.explorer is None else self.explorer.wakes(snapshot, changes)

    def _trials(self, beliefs: Beliefs, ranked: Ints) -> dict[int, Numbers]:
        """Position in the ranking -> size to try, of all jobs that have something left to try."""
        if self.explorer is None:
            return {}
        trials = {}
        for j, row in enumerate(ranked.tolist()):
            trial = self.explorer.next(beliefs.snapshot, row, _trial_sizes(beliefs, row))
            if trial is not None:
                trials[j] = trial
        return trials


def grow(growths: Sequence[Growth]) -> Ints:
    """Return workers and servers of each job, none to wait; earlier jobs come first when room is short."""
    room = ALL
    sizes: list[Numbers] = [(0, 0)] * len(growths)
    room = _claim(growths, sizes, [growth.least for growth in growths], room)
    tries = [growth.trial if size[0] else None for growth, size in zip(growths, sizes, strict=True)]
    room = _claim(growths, sizes, tries, room)
    heap: list[tuple[float, int, bool]] = []
    for j, growth in enumerate(growths):
        if sizes[j][0] and sizes[j] != growth.trial:
            _offer(heap, j, growth, sizes[j], room)
    while heap:
        _, j, server = heapq.heappop(heap)
        growth, (workers, servers) = growths[j], sizes[j]
        left = without(room, growth.server if server else growth.worker, 1)
        if min(left) >= 0:
            room = left
            sizes[j] = (workers, servers + 1) if server else (workers + 1, servers)
        _offer(heap, j, growth, sizes[j], room)
    return np.array(sizes, dtype=np.int64).reshape(-1, 2)


def _claim(
    growths: Sequence[Growth], sizes: list[Numbers], wanted: Sequence[Numbers | None], room: Vector
) -> Vector:
    """Give jobs the sizes they want as long as there is room; return what is left of it."""
    for j, (growth, want) in enumerate(zip(growths, wanted, strict=True)):
        if want is not None:
            left = without(room, growth.worker, want[0] - sizes[j][0])
            left = without(left, growth.server, want[1] - sizes[j][1])
            if min(left) >= 0:
                room, sizes[j] = left, want
    return room


def _offer(heap: list[tuple[float, int, bool]], j: int, growth: Growth, size: Numbers, room: Vector) -> None:
    """Queue the better of one more worker and one more server, if it fits and saves any time."""
    left, pace, _, (most_workers, most_servers), worker, server, _ = growth
    (workers, servers), best, is_server = size, 0.0, False
    at = pace.item
    now = at(workers, servers)
    gpus, cpus, memory = room
    if servers < most_servers and server[1] <= cpus and server[2] <= memory:
        best = (now - at(workers, servers + 1)) / max(*server, TINY)
        is_server = best > 0
    if workers < most_workers and worker[0] <= gpus and worker[1] <= cpus and worker[2] <= memory:
        gain = (now - at(workers + 1, servers)) / max(worker)
        if gain > best:
            best, is_server = gain, False
    if best > 0:
        heapq.heappush(heap, (-best * left, j, is_server))


def growths_of(beliefs: Beliefs, ranked: Ints, trials: dict[int, Numbers]) -> list[Growth]:
    """What each ranked job could become."""
    jobs, total = beliefs.snapshot.table.jobs, capacity(beliefs.snapshot)
    left: list[float] = beliefs.left.tolist()
    # Seconds per sample by speeds; these are kept too, so that their id stays their own.
    paces: dict[int, tuple[Floats, Floats]] = {}
    growths = []
    for j, row in enumerate(ranked.tolist()):
        job, apart, trial = jobs[row], beliefs.apart(row), trials.get(j)
        speeds = beliefs.surface(row) if apart else beliefs.curve(row)
        known = paces.get(id(speeds))
        if known is None:
            with np.errstate(divide="ignore"):
                known = paces[id(speeds)] = (speeds, 1.0 / speeds.reshape(len(speeds), -1))
        if trial is not None and not apart:
            trial = trial[0], 0
        growths.append(
            Growth(
                left[row],
                known[1],
                (job.least_gpus, int(apart)),
                (beliefs.most(row), min(job.most_gpus, MOST_SERVERS) if apart else 0),
                *tasks_of(job, total),
                trial,
            )
        )
    return growths


def _trial_sizes(beliefs: Beliefs, row: int) -> list[Numbers]:
    """Sizes to learn from, as far as the job may have them."""
    job, most = beliefs.snapshot.table.jobs[row], beliefs.most(row)
    if beliefs.apart(row):
        return [(w, p) for w, p in SERVER_TRIALS if job.least_gpus <= w <= most]
    serves = job.profile is not None and job.profile.serves
    return [(w, w if serves else 0) for w in RING_TRIALS if job.least_gpus <= w <= most]
