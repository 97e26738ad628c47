"""The decisions of one time slot: sizes start at the smallest and grow by one task at a time.

Many slots are decided at once, each of another cluster: arrays have a row per slot (b) and a column per job (j),
padded. Job j of a slot has three actions, and there is one more to end the slot:

    0  stop        1 + 3j  one more worker        2 + 3j  one more server        3 + 3j  both

A job without servers of its own knows only "worker". A job that has nothing yet gets its smallest size by
"both", or by "worker" if it knows no other. An action is legal if the job may have it and the cluster has room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.cluster import Floats, Ints
from trainyard.policy.dl2.features import Features, Singles
from trainyard.policy.dl2.kinds import Bools, Kinds
from trainyard.policy.predict import Told
from trainyard.policy.snapshot import Column, Snapshot
from trainyard.policy.stages import Sizes
from trainyard.policy.tasks import TINY, capacity

C = Column
STOP = 0
WORKER, SERVER, BOTH = 1, 2, 3  # of job 0; those of job j are 3 j later
ACTIONS = 3  # of a job


class Observation(NamedTuple):
    """What a policy decides on: views that change with the next action; copy what has to last."""

    jobs: Singles  # (B, J, features of a job); zero where there is no job
    cluster: Singles  # (B, features of a cluster)
    mask: Bools  # (B, 1 + 3 J): which actions are legal


class Slots:
    """So many slots at once."""

    def __init__(self, batch: int, features: Features, width: int = 8) -> None:
        self.kinds = Kinds()
        self.features = features
        self.batch = batch
        self.count: Ints = np.zeros(batch, dtype=np.int64)  # jobs
        self.room: Floats = np.zeros((batch, 3))  # what is free, as parts of the cluster
        self.smallest: Floats = np.zeros((batch, 3))  # what all jobs take at their smallest sizes
        self.rows: list[Ints] = [np.zeros(0, dtype=np.int64)] * batch  # of the job table, by job
        self._cluster: Singles = np.zeros((batch, features.of_cluster), dtype=np.float32)
        self._allocate(width)

    def _allocate(self, width: int) -> None:
        """Set up arrays for so many jobs in a slot."""
        shape = (self.batch, width)
        self.width = width
        self.kind: Ints = np.zeros(shape, dtype=np.int64)
        self.workers: Ints = np.zeros(shape, dtype=np.int64)
        self.servers: Ints = np.zeros(shape, dtype=np.int64)
        self.least: Ints = np.zeros(shape, dtype=np.int64)
        self.most_workers: Ints = np.zeros(shape, dtype=np.int64)
        self.most_servers: Ints = np.zeros(shape, dtype=np.int64)
        self.apart: Bools = np.zeros(shape, dtype=np.bool_)
        self.parts: Floats = np.zeros((*shape, 2, 3))  # of the cluster, that a worker and a server take
        self.needs: Floats = np.zeros((*shape, ACTIONS, 3))  # what each action takes
        self.may: Bools = np.zeros((*shape, ACTIONS), dtype=np.bool_)  # whether the job itself allows it
        self.left: Floats = np.zeros(shape)  # work, in slots at the job's peak speed
        self._jobs: Singles = np.zeros((*shape, self.features.of_job), dtype=np.float32)

    def _widen(self, jobs: int) -> None:
        """Make room for more jobs, at least twice as many."""
        names = ("kind", "workers", "servers", "least", "most_workers", "most_servers", "apart", "parts")
        before = {name: getattr(self, name) for name in (*names, "needs", "may", "left", "_jobs")}
        width = self.width
        self._allocate(max(jobs, 2 * width))
        for name, array in before.items():
            getattr(self, name)[:, :width] = array

    def open(self, b: int, snapshot: Snapshot, ranked: Ints, slot_s: float, start: bool = True) -> None:
        """Begin slot b with these jobs, each at its smallest size while there is room, or at none."""
        n, kinds = ranked.size, self.kinds
        if n > self.width:
            self._widen(n)
        beliefs = Told(snapshot)
        kind = kinds.of(beliefs, ranked.tolist())
        self.count[b], self.rows[b] = n, ranked
        self._clear(b)
        self.kind[b, :n] = kind
        self.least[b, :n] = kinds.least[kind]
        self.most_workers[b, :n] = kinds.most_workers[kind]
        self.most_servers[b, :n] = kinds.most_servers[kind]
        self.apart[b, :n] = kinds.apart[kind]
        parts = kinds.demand[kind] / capacity(snapshot)
        self.parts[b, :n] = np.where(np.isnan(parts), parts[:, :, :1], parts)
        self.left[b, :n] = beliefs.left[ranked] / (kinds.peak[kind] * slot_s)
        self.room[b] = 1.0 + TINY
        need = self.least[b, :n, None] * self.parts[b, :n, 0] + self.parts[b, :n, 1]
        self.smallest[b] = need.sum(axis=0)
        if start:
            self._start(b, n, need)
        self._jobs[b, :n] = self.features.fixed(self, b, beliefs, slot_s)
        at = np.full(n, b), np.arange(n)
        self._refresh(*at)
        self.features.cluster(self, at[0][:1], self._cluster)

    def _clear(self, b: int) -> None:
        for array in (self.workers, self.servers, self.may, self._jobs):
            array[b] = 0

    def _start(self, b: int, n: int, need: Floats) -> None:
        """Give everybody the smallest size in turn; who finds no room waits."""
        fits: Bools = np.ones(n, dtype=np.bool_)
        if (self.smallest[b] > self.room[b]).any():
            fits = _in_turn(need, self.room[b])
        self.workers[b, :n] = self.least[b, :n] * fits
        self.servers[b, :n] = self.apart[b, :n] & fits
        self.room[b] -= need[fits].sum(axis=0)

    def act(self, at: Ints, actions: Ints) -> None:
        """Take one action, not stop, in each of these slots."""
        j, which = np.divmod(actions - 1, ACTIONS)
        self.room[at] -= self.needs[at, j, which]
        workers = self.workers[at, j]
        self.workers[at, j] = workers + (which != SERVER - 1) * np.where(workers, 1, self.least[at, j])
        self.servers[at, j] += which != WORKER - 1
        self._refresh(at, j)
        self.features.cluster(self, at, self._cluster)

    def _refresh(self, at: Ints, j: Ints) -> None:
        """Work out anew what follows from the sizes of these jobs."""
        workers, servers, apart = self.workers[at, j], self.servers[at, j], self.apart[at, j]
        none = workers == 0
        parts = self.parts[at, j]
        first = np.where(none, self.least[at, j], 1)[:, None] * parts[:, 0]
        self.needs[at, j] = np.stack([first, parts[:, 1], first + parts[:, 1]], axis=1)
        more = workers < self.most_workers[at, j]
        serve = apart & (servers < self.most_servers[at, j])
        self.may[at, j] = np.stack([more & ~(apart & none), serve & ~none, serve & more], axis=1)
        self._jobs[at, j, self.features.moving] = self.features.of_size(self, at, j)

    def observe(self) -> Observation:
        """Return what there is to decide on in all slots."""
        mask: Bools = np.ones((self.batch, 1 + ACTIONS * self.width), dtype=np.bool_)
        fits = (self.needs <= self.room[:, None, None, :]).all(axis=3)
        fits &= self.may
        mask[:, 1:] = fits.reshape(self.batch, -1)
        return Observation(self._jobs, self._cluster, mask)

    def sizes(self, b: int) -> Sizes:
        """Return the sizes that slot b has come to, in the order of its ranking."""
        n = int(self.count[b])
        return Sizes(self.workers[b, :n].copy(), self.servers[b, :n].copy())


def _in_turn(need: Floats, room: Floats) -> Bools:
    """Who finds room, the first ones first; who does not fit is passed over."""
    left, fits = room.copy(), np.zeros(len(need), dtype=np.bool_)
    for i, each in enumerate(need):
        if (each <= left).all():
            left -= each
            fits[i] = True
    return fits
