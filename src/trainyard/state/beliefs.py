"""What a size stage believes of a job: its speed at every size, and how much is left to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import by_speed
from trainyard.model.job import Job
from trainyard.model.kind import Kind
from trainyard.model.profile import Profile
from trainyard.profiling.convergence import LEAST_POINTS, epochs_to_converge, fit_curve
from trainyard.profiling.scaling import Formula, ScalingFit, fit_scaling
from trainyard.state.jobs import Column
from trainyard.state.seen import losses_of
from trainyard.state.snapshot import Snapshot

C = Column
MOST_SERVERS = 32  # of one job: what is tried out must end somewhere
# Optimus: a job has converged when its loss fell by less than 5% of the largest over the last ten epochs.
WINDOW, AT_REST, MOST_EPOCHS = 10, 0.05, 100
MOST_FITS = 4096  # that are remembered
UNKNOWN_EPOCHS = 20  # what is left of a job that has not told enough losses


class Beliefs(ABC):
    """Speeds in samples/s by number of GPUs, and samples left, of the jobs of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.left: Floats = snapshot.remaining_samples()
        self._fastest = by_speed(snapshot.nodes)[0]
        self._gpus = int(snapshot.nodes.gpus.sum())
        self._most: dict[Kind, int] = {}

    @abstractmethod
    def curve(self, row: int) -> Floats:
        """Speeds with 0 to the most GPUs the job can use; a server for each worker, if any."""

    @abstractmethod
    def surface(self, row: int) -> Floats:
        """Speeds by GPUs (rows) and parameter servers (columns)."""

    def speed(self, row: int, gpus: int, servers: int) -> float:
        """Speed at one size."""
        if not self.apart(row):
            return float(self.curve(row)[gpus])
        surface = self.surface(row)
        return float(surface[gpus, min(servers, surface.shape[1] - 1)])

    def most(self, row: int) -> int:
        """GPUs that the job may have at most, and that there are for it."""
        job = self.snapshot.table.jobs[row]
        most = self._most.get(job.kind)
        if most is None:
            type_ = self.snapshot.table.records[row].type_index
            there = self._gpus if type_ < 0 else int(self.snapshot.nodes.gpus_of_type[type_])
            most = self._most[job.kind] = max(min(job.most_gpus, there), job.least_gpus)
        return most

    def gpu_type(self, row: int) -> int:
        """Index of the GPU type the job is thought to run on: its own, what it holds, else the fastest."""
        own = self.snapshot.table.records[row].type_index
        held = self.snapshot.target.get(self.snapshot.table.jobs[row].job_id) if own < 0 else None
        if held is not None:
            workers = self.snapshot.nodes.workers_by_type(held)
            return workers.index(max(workers))
        return self._fastest if own < 0 else own

    def apart(self, row: int) -> bool:
        """Whether the job's parameter servers hold resources of their own, so that their number matters."""
        profile = self.snapshot.table.jobs[row].profile
        return profile is not None and profile.apart


class Told(Beliefs):
    """As the profiles say."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._curves: dict[tuple[Kind, int], Floats] = {}  # by GPU type

    def curve(self, row: int) -> Floats:
        """Ask the speed model, once for all jobs that are alike."""
        job, type_ = self.snapshot.table.jobs[row], self.gpu_type(row)
        known = self._curves.get((job.kind, type_))
        if known is None:
            known = self._curves[job.kind, type_] = self.snapshot.speed.curve(job, type_, self.most(row))
        pace = self.snapshot.table.records[row].pace
        return known if pace == 1.0 else known * pace

    def surface(self, row: int) -> Floats:
        """Ask the speed model."""
        job = self.snapshot.table.jobs[row]
        most, servers = self.most(row), min(job.most_gpus, MOST_SERVERS)
        known = self.snapshot.speed.surface(job, self.gpu_type(row), most, servers)
        pace = self.snapshot.table.records[row].pace
        return known if pace == 1.0 else known * pace


class Learned(Beliefs):
    """As far as can be told from what jobs did so far; with `losses`, also how much is left of them.

    A job that has not run yet is believed to scale linearly from one sample per second.
    """

    def __init__(self, snapshot: Snapshot, losses: bool = False) -> None:
        super().__init__(snapshot)
        if losses:
            done = snapshot.table.column(C.TOTAL) - self.left
            for row, job in enumerate(snapshot.table.jobs):
                loss = job.profile.loss if job.profile is not None else None
                samples, told = losses_of(snapshot.table.records[row].seen, loss, float(done[row]))
                if told.size:
                    epoch = loss.epoch_samples if loss is not None else float(samples[0])
                    self.left[row] = self._left(samples, told, epoch, float(done[row]))

    def curve(self, row: int) -> Floats:
        """Fit what was seen."""
        job = self.snapshot.table.jobs[row]
        gpus = np.arange(self.most(row) + 1)
        serves = job.profile is not None and job.profile.serves
        return self._speeds(row, gpus, gpus if serves else np.zeros_like(gpus))

    def surface(self, row: int) -> Floats:
        """Fit what was seen."""
        servers = min(self.snapshot.table.jobs[row].most_gpus, MOST_SERVERS)
        shape = (self.most(row) + 1, servers + 1)
        return self._speeds(row, *np.indices(shape).reshape(2, -1)).reshape(shape)

    def _speeds(self, row: int, gpus: Ints, servers: Ints) -> Floats:
        """Fit speeds again only when the job was seen to run at a new size or speed."""
        job, seen = self.snapshot.table.jobs[row], self.snapshot.seen(row)
        rates = tuple((size, _rounded(samples / seconds)) for size, (seconds, samples) in seen.items())
        key = job.kind, gpus.size, int(servers.max(initial=0)), rates
        book: dict[object, Floats] = _book(self.snapshot, "speeds")
        speeds = book.get(key)
        if speeds is None:
            speeds = book[key] = gpus.astype(np.float64)
            if rates:
                some = gpus > 0
                speeds[some] = _fit(job, rates).speed(gpus[some], servers[some])
        return speeds

    def _left(self, samples: Floats, losses: Floats, epoch: float, done: float) -> float:
        """Samples until the loss comes to rest; with too few losses to tell, some more epochs."""
        if len(losses) < LEAST_POINTS:
            return UNKNOWN_EPOCHS * epoch
        book: dict[object, int] = _book(self.snapshot, "losses")
        key = samples.tobytes(), losses.tobytes(), epoch
        epochs = book.get(key)
        if epochs is None:
            curve = fit_curve(samples / epoch, losses / float(losses.max()))
            epochs = book[key] = epochs_to_converge(curve, WINDOW, AT_REST, MOST_EPOCHS)
        return max(epochs * epoch - done, epoch)


def _book(snapshot: Snapshot, name: str) -> dict[object, Any]:
    """What was fitted so far, so that nothing is fitted twice; a full book is begun anew."""
    book: dict[object, Any] = snapshot.caches.setdefault(name, {})
    if len(book) > MOST_FITS:
        book.clear()
    return book


def _rounded(rate: float) -> float:
    """A speed without the last digits, in which equal speeds differ by rounding."""
    return float(f"{rate:.9g}")


def _fit(job: Job, rates: Sequence[tuple[tuple[int, int], float]]) -> ScalingFit:
    """Fit speeds to the sizes a job has run at."""
    profile = job.profile or Profile()
    sync = profile.sync
    kind: Formula = "ring" if sync is None or sync.kind != "ps" else sync.mode
    workers, servers = np.array([size for size, _ in rates], dtype=np.int64).T
    speeds = np.array([rate for _, rate in rates], dtype=np.float64)
    return fit_scaling(kind, profile.batch, profile.scaling, workers, servers, speeds)
