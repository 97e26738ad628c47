"""What jobs that are alike have in common, as arrays: speeds at every size, demands and limits.

A slot looks these up by number instead of asking the speed model again for every job and every decision.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.job import Job
from trainyard.model.kind import Kind
from trainyard.model.speed import SpeedModel
from trainyard.model.tolerance import SAMPLES_PER_S
from trainyard.state.beliefs import MOST_SERVERS, Told


class Kinds:
    """A growing table of kinds of jobs.

    The speed of a job of kind k with w workers and p servers is speeds[base[k] + w * stride[k] + p].
    """

    def __init__(self) -> None:
        self.speeds: Floats = np.zeros(0)
        self.base: Ints = np.zeros(0, dtype=np.int64)
        self.stride: Ints = np.zeros(0, dtype=np.int64)
        self.peak: Floats = np.zeros(0)
        self.best: Ints = np.zeros((2, 0), dtype=np.int64)  # workers and servers at the peak
        self.least: Ints = np.zeros(0, dtype=np.int64)
        self.most_workers: Ints = np.zeros(0, dtype=np.int64)
        self.most_servers: Ints = np.zeros(0, dtype=np.int64)
        self.apart: Mask = np.zeros(0, dtype=np.bool_)
        self.demand: Floats = np.zeros(
            (0, 2, 3)
        )  # GPUs, CPUs, GB of a worker and of a server; NaN: its share
        self.names: list[str] = []
        self._number: dict[tuple[SpeedModel, Kind], int] = {}

    def of(self, beliefs: Told, rows: list[int]) -> Ints:
        """Return the kind of each row of the job table."""
        jobs, speed, known = beliefs.snapshot.table.jobs, beliefs.snapshot.speed, self._number
        found = []
        for row in rows:
            job = jobs[row]
            number = known.get((speed, job.kind))
            if number is None:
                number = known[speed, job.kind] = self._add(beliefs, row, job)
            found.append(number)
        return np.array(found, dtype=np.int64)

    def _add(self, beliefs: Told, row: int, job: Job) -> int:
        apart = beliefs.apart(row)
        speeds = beliefs.surface(row) if apart else beliefs.curve(row)[:, np.newaxis]
        peak = max(float(speeds.max()), SAMPLES_PER_S)
        self.base = np.append(self.base, self.speeds.size)
        self.stride = np.append(self.stride, speeds.shape[1])
        self.speeds = np.append(self.speeds, speeds)
        self.peak = np.append(self.peak, peak)
        best = np.array(divmod(int(speeds.argmax()), speeds.shape[1]))
        self.best = np.append(self.best, best[:, None], axis=1)
        self.least = np.append(self.least, job.least_gpus)
        self.most_workers = np.append(self.most_workers, beliefs.most(row))
        self.most_servers = np.append(self.most_servers, min(job.most_gpus, MOST_SERVERS) if apart else 0)
        self.apart = np.append(self.apart, apart)
        self.demand = np.append(self.demand, [_demand(job)], axis=0)
        self.names.append(job.profile.name if job.profile is not None else "")
        return len(self.names) - 1


def _demand(job: Job) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """GPUs, CPUs and GB of a worker and of a server."""
    cpus, memory_gb = job.asked_per_gpu
    worker = (1.0, np.nan if cpus is None else cpus, np.nan if memory_gb is None else memory_gb)
    server = job.profile.server if job.profile is not None and job.profile.apart else None
    return worker, (0.0, server.cpus, server.memory_gb) if server else (0.0, 0.0, 0.0)
