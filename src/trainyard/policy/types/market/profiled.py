"""Completion times of the active jobs of a snapshot, by the speed model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.policy.types.market.menus import binary, grid_configs

DENSE = 40_000  # configurations of a kind of job that are all worked out in advance


class Paces:
    """How fast the jobs of a kind train, and what they may choose from, within a room."""

    def __init__(self, speed: SpeedModel, job: Job, room: Ints) -> None:
        self.job = job
        self.room = room  # workers of each type that such a job may have
        self.most = min(job.most_gpus, int(room.sum()))
        self._speed = speed
        self._base: Ints = np.minimum(room, self.most) + 1
        places = np.append(np.cumprod(self._base[::-1])[::-1][1:], 1)
        self._places: Ints = places.astype(np.int64)
        size = int(np.prod(self._base.astype(np.float64)))
        self._dense: Floats | None = None
        if size <= DENSE:
            every = np.stack(np.unravel_index(np.arange(size), self._base.tolist()), axis=1)
            self._dense = self._paces(every)

    def paces(self, configs: Ints) -> Floats:
        """Seconds per sample with workers by type; infinite for too many or too few."""
        there = np.minimum(configs, self._base - 1)
        pace = self._paces(there) if self._dense is None else self._dense[there @ self._places]
        return np.where((configs < self._base).all(axis=1), pace, np.inf)

    def _paces(self, configs: Ints) -> Floats:
        size = configs.sum(axis=1)
        with np.errstate(divide="ignore"):
            pace: Floats = 1.0 / self._speed.mixed(self.job, configs)
        pace[(size < self.job.least_gpus) | (size > self.most)] = np.inf
        return pace

    @cached_property
    def menu(self) -> tuple[Ints, Floats]:
        """Configurations that such a job may choose from, and their paces."""
        configs = self._offers()
        pace = self.paces(configs)
        some = np.isfinite(pace)
        return configs[some], pace[some]

    @cached_property
    def every(self) -> tuple[Ints, Floats] | None:
        """All configurations and their paces; None if they are too many."""
        if self._dense is None:
            return None
        some = np.flatnonzero(np.isfinite(self._dense))
        return np.stack(np.unravel_index(some, self._base.tolist()), axis=1), self._dense[some]

    def ring(self, sizes: Ints) -> tuple[Floats, Floats]:
        """Speed of a worker of each type, and what n of them take besides computing, per sample.

        By the paper's formula: exact if n workers are of the fastest types, nearly so elsewhere.
        """
        size = np.minimum(self.room, self.job.least_gpus)
        rho: Floats = np.where(
            size > 0, self._speed.mixed(self.job, np.diag(size)) / np.maximum(size, 1), 0.0
        )
        fastest = np.argsort(-rho, kind="stable")
        best = np.stack([_filled(self.room, fastest, int(n)) for n in sizes])
        with np.errstate(divide="ignore"):
            rest: Floats = np.maximum(self.paces(best) - 1.0 / (best @ rho), 0.0)
        rest[best.sum(axis=1) < sizes] = np.inf
        return rho, rest

    def _offers(self) -> Ints:
        configs = np.concatenate([grid_configs(self.room, self.most, binary), self._ends()])
        size = configs.sum(axis=1)
        return np.unique(configs[(size >= self.job.least_gpus) & (size <= self.most)], axis=0)

    def _ends(self) -> Ints:
        """The least, the asked and the largest number of workers, starting with each type."""
        return np.concatenate([self._from_each(n) for n in {self.job.least_gpus, self.job.gpus, self.most}])

    def least_mixes(self) -> Ints:
        """The fewest workers that such a job can run with, starting with each type."""
        return np.unique(self._from_each(self.job.least_gpus), axis=0)

    def _from_each(self, size: int) -> Ints:
        types = np.arange(len(self.room))
        return np.stack([_filled(self.room, np.roll(types, -t), size) for t in types])


def _filled(room: Ints, order: Ints, size: int) -> Ints:
    """Workers of the first type in this order; if it has too few, of the next ones too."""
    before = np.concatenate([[0], np.cumsum(room[order])[:-1]])
    row: Ints = np.zeros_like(room)
    row[order] = np.clip(size - before, 0, room[order])
    return row


class Profiled:
    """Completion times of some jobs, each of a kind, with these samples left."""

    def __init__(self, kinds: Sequence[Paces], kind_of: Ints, left: Floats) -> None:
        self.kinds = kinds
        self.kind_of = kind_of
        self.left = left

    def seconds(self, jobs: Ints, configs: Ints) -> Floats:
        """Completion time of each of some jobs with its workers by type; infinite if it cannot have them."""
        kind_of = self.kind_of[jobs]
        pace = np.empty(len(jobs))
        for kind in np.unique(kind_of).tolist():
            here = kind_of == kind
            pace[here] = self.kinds[kind].paces(configs[here])
        return self.left[jobs] * pace


def profiled(speed: SpeedModel, jobs: Sequence[Job], types: Ints, capacity: Ints, left: Floats) -> Profiled:
    """Sort jobs into kinds; what was worked out of a kind is kept with the speed model.

    `types` is the only GPU type that each job may have, or -1.
    """
    known: dict[tuple[object, ...], Paces] = speed.derived
    number: dict[Paces, int] = {}
    kind_of: Ints = np.empty(len(jobs), dtype=np.int64)
    there = capacity.tobytes()
    for j, (job, own) in enumerate(zip(jobs, types.tolist(), strict=True)):
        key = (there, own, job.kind)
        paces = known.get(key)
        if paces is None:
            room = capacity if own < 0 else capacity * (np.arange(len(capacity)) == own)
            paces = known[key] = Paces(speed, job, room)
        kind_of[j] = number.setdefault(paces, len(number))
    return Profiled(list(number), kind_of, left)
