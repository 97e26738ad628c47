"""The decisions of one time slot: sizes start at the smallest and grow by one task at a time.

Many slots are decided at once, each of another cluster: arrays have a row per slot (b) and a column per job
(j), padded. Job j of a slot has three actions, and there is one more to end the slot:

    0  stop        1 + 3j  one more worker        2 + 3j  one more server        3 + 3j  both

A job without servers of its own knows only "worker". A job that has nothing yet gets its smallest size by
"both", or by "worker" if it knows no other. An action is legal if the job may have it and the cluster has
room for it in all; the place stage, which comes later, cuts the few tasks for which it then finds no node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import PART
from trainyard.policy.size.dl2.arrays import ACTIONS, Singles, SlotArrays
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.growth import in_turn
from trainyard.policy.stages import Shapes
from trainyard.state.beliefs import Told
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
STOP = 0
WORKER, SERVER, BOTH = range(3)  # in the order of a job's actions


class Observation(NamedTuple):
    """What a policy decides on. `jobs` and `cluster` change with the next action: copy what has to last."""

    jobs: Singles  # (B, J, features of a job); zero where there is no job
    cluster: Singles  # (B, features of a cluster)
    mask: Mask  # (B, 1 + 3 J): which actions are legal


class Slots(SlotArrays):
    """Some slots at once."""

    def __init__(self, batch: int, features: Features, width: int = 8) -> None:
        super().__init__(batch, width, features.of_job, features.of_cluster)
        self.features = features

    def open(self, b: int, snapshot: Snapshot, ranked: Ints, slot_s: float, start: bool = True) -> None:
        """Begin slot b with these jobs, each at its smallest size while there is room, or at none."""
        n, kinds, beliefs = ranked.size, self.kinds, Told(snapshot)
        if n > self.width:
            self.width = max(n, 2 * self.width)
            self.jobs = self.jobs.widened(self.width)
        self.clear(b)
        jobs, table = self.jobs, snapshot.table
        every_job = kinds.of(beliefs, list(range(len(table))))
        self.left[b] = beliefs.left / (kinds.peak[every_job] * slot_s)
        self.count[b], self.rows[b], self.room[b] = n, ranked, 1.0 + PART
        kind = jobs.kind[b, :n] = every_job[ranked]
        parts = kinds.demand[kind] / up_capacity(snapshot)
        parts = jobs.parts[b, :n] = np.where(np.isnan(parts), parts[:, :, :1], parts)
        jobs.undone[b, :n] = beliefs.left[ranked] / table.column(C.TOTAL)[ranked]
        jobs.left[b, :n] = self.left[b][ranked]
        jobs.age[b, :n] = (snapshot.now_s - table.column(C.ARRIVAL)[ranked]) / slot_s
        need = kinds.least[kind][:, None] * parts[:, 0] + parts[:, 1]
        self.smallest[b] = need.sum(axis=0)
        if start:
            self._start(b, need)
        jobs.features[b, :n] = self.features.fixed(self, b, snapshot, slot_s)
        at = np.full(n, b)
        self._refresh(at, np.arange(n))
        self.features.of_clusters(self, at[:1])

    def clear(self, b: int) -> None:
        """Leave slot b without jobs: nothing but stop is legal."""
        self.count[b] = 0
        for array in (self.jobs.workers, self.jobs.servers, self.jobs.may, self.jobs.features):
            array[b] = 0

    def _start(self, b: int, need: Floats) -> None:
        """Give every job its smallest size in turn; a job that finds no room waits."""
        n, kind = len(need), self.jobs.kind[b, : len(need)]
        fits: Mask = np.zeros(n, dtype=np.bool_)
        fits[in_turn(need.tolist(), self.room[b].tolist())[0]] = True
        self.jobs.workers[b, :n] = self.kinds.least[kind] * fits
        self.jobs.servers[b, :n] = self.kinds.apart[kind] & fits
        self.room[b] -= need[fits].sum(axis=0)

    def act(self, at: Ints, actions: Ints) -> None:
        """Take one action, not stop, in each of these slots, or several of different jobs in one."""
        jobs = self.jobs
        j, which = np.divmod(actions - 1, ACTIONS)
        np.subtract.at(self.room, at, jobs.needs[at, j, which])
        workers, least = jobs.workers[at, j], self.kinds.least[jobs.kind[at, j]]
        jobs.workers[at, j] = workers + (which != SERVER) * np.where(workers, 1, least)
        jobs.servers[at, j] += which != WORKER
        self._refresh(at, j)
        self.features.of_clusters(self, at)

    def _refresh(self, at: Ints, j: Ints) -> None:
        """Work out anew what follows from the sizes of these jobs."""
        jobs, kinds = self.jobs, self.kinds
        kind, workers, servers, parts = (
            a[at, j] for a in (jobs.kind, jobs.workers, jobs.servers, jobs.parts)
        )
        none, apart = workers == 0, kinds.apart[kind]
        first = np.where(none, kinds.least[kind], 1)[:, None] * parts[:, 0]
        jobs.needs[at, j] = np.stack([first, parts[:, 1], first + parts[:, 1]], axis=1)
        more = workers < kinds.most_workers[kind]
        serve = apart & (servers < kinds.most_servers[kind])
        jobs.may[at, j] = np.stack([more & ~(apart & none), serve & ~none, serve & more], axis=1)
        jobs.features[at, j, self.features.moving] = self.features.of_size(self, at, j)

    def observe(self) -> Observation:
        """Return what there is to decide on in all slots."""
        mask: Mask = np.zeros((self.batch, 1 + ACTIONS * self.width), dtype=np.bool_)
        mask[:, STOP] = True
        n = int(self.count.max())  # after a burst of jobs most columns are empty again
        fits = (self.jobs.needs[:, :n] <= self.room[:, None, None, :]).all(axis=3)
        fits &= self.jobs.may[:, :n]
        mask[:, 1 : 1 + ACTIONS * n] = fits.reshape(self.batch, -1)
        return Observation(self.jobs.features, self.cluster, mask)

    def shapes(self, b: int) -> Shapes:
        """Return the shapes that slot b has come to, in the order of its ranking."""
        n = int(self.count[b])
        return Shapes(self.jobs.workers[b, :n].copy(), self.jobs.servers[b, :n].copy())
