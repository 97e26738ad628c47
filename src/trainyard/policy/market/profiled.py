"""Completion times of the active jobs of a snapshot, by the speed model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainyard.model.cluster import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.policy.market.menus import binary, grid_configs

DENSE = 40_000  # configurations of a kind of job that are all worked out in advance


class Kind:
    """Jobs that train at the same pace: the same model, the same demands."""

    def __init__(self, speed: SpeedModel, job: Job, capacity: Ints) -> None:
        self.job = job
        self.most = min(job.most_gpus, int(capacity.sum()))
        self._speed = speed
        self._base: Ints = np.minimum(capacity, self.most) + 1
        places = np.append(np.cumprod(self._base[::-1])[::-1][1:], 1)
        self._places: Ints = places.astype(np.int64)
        size = int(np.prod(self._base.astype(np.float64)))
        self._dense: Floats | None = None
        self._menus: dict[bytes, tuple[Ints, Floats]] = {}
        if size <= DENSE:
            every = np.stack(np.unravel_index(np.arange(size), self._base.tolist()), axis=1)
            self._dense = self._paces(every)

    def paces(self, configs: Ints) -> Floats:
        """Seconds per sample with workers by type; infinite for too many or too few."""
        if self._dense is None:
            return self._paces(configs)
        known: Floats = self._dense[np.minimum(configs, self._base - 1) @ self._places]
        return np.where((configs < self._base).all(axis=1), known, np.inf)

    def _paces(self, configs: Ints) -> Floats:
        size = configs.sum(axis=1)
        with np.errstate(divide="ignore"):
            pace: Floats = 1.0 / self._speed.mixed(self.job, configs)
        pace[(size < self.job.least_gpus) | (size > self.most)] = np.inf
        return pace

    def menu(self, room: Ints) -> tuple[Ints, Floats]:
        """Configurations that such a job may choose from where there is so much room, and their paces."""
        known = self._menus.get(room.tobytes())
        if known is None:
            configs = self._offers(room)
            pace = self.paces(configs)
            some = np.isfinite(pace)
            known = self._menus[room.tobytes()] = (configs[some], pace[some])
        return known

    def ring(self, sizes: Ints, types: int) -> tuple[Floats, Floats]:
        """Speed of a worker of each type, and what n of them take besides computing, per sample.

        By the paper's formula: exact on the type where the job is fastest, nearly so elsewhere.
        """
        least = self.job.least_gpus
        alone = np.diag(np.full(types, least))
        with np.errstate(divide="ignore"):
            rho: Floats = np.nan_to_num(1.0 / (self.paces(alone) * least), posinf=0.0)
        best = np.zeros((len(sizes), types), dtype=np.int64)
        best[:, int(rho.argmax())] = sizes
        with np.errstate(divide="ignore"):
            rest: Floats = np.maximum(self.paces(best) - 1.0 / (sizes * rho.max()), 0.0)
        return rho, rest

    def _offers(self, room: Ints) -> Ints:
        configs = grid_configs(room, self.most, binary)
        configs = np.concatenate([configs, self._ends(room)])
        size = configs.sum(axis=1)
        return np.unique(configs[(size >= self.job.least_gpus) & (size <= self.most)], axis=0)

    def _ends(self, room: Ints) -> Ints:
        """The least and the asked number of workers on each type, and on the types together."""
        rows = []
        for size in {self.job.least_gpus, self.job.gpus, self.most}:
            rows += [row for row in np.diag(np.minimum(room, size)) if row.sum() == size]
            for first in range(len(room)):  # types that are too few are mixed with the next ones
                order = np.roll(np.arange(len(room)), -first)
                before = np.concatenate([[0], np.cumsum(room[order])[:-1]])
                row = np.zeros(len(room), dtype=np.int64)
                row[order] = np.clip(size - before, 0, room[order])
                rows.append(row)
        return np.array(rows, dtype=np.int64).reshape(-1, len(room))


class Profiled:
    """Completion times of some jobs, each of a kind, with so many samples left."""

    def __init__(self, kinds: Sequence[Kind], kind_of: Ints, left: Floats) -> None:
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


def profiled(speed: SpeedModel, jobs: Sequence[Job], capacity: Ints, left: Floats) -> Profiled:
    """Sort jobs into kinds; what was worked out of a kind is kept with the speed model."""
    known: dict[tuple[object, ...], Kind] = speed.derived
    kinds: dict[int, int] = {}
    found: list[Kind] = []
    kind_of: Ints = np.empty(len(jobs), dtype=np.int64)
    there = capacity.tobytes()
    for j, job in enumerate(jobs):
        key = (there, id(job.profile), job.least_gpus, job.most_gpus, job.gpus, job.asked_per_gpu)
        kind = known.get(key)
        if kind is None:
            kind = known[key] = Kind(speed, job, capacity)
        at = kinds.setdefault(id(kind), len(found))
        if at == len(found):
            found.append(kind)
        kind_of[j] = at
    return Profiled(found, kind_of, left)
