"""The arrays of many time slots: the jobs of each, their sizes so far, and what is free."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.size.dl2.kinds import Kinds
from trainyard.policy.size.steepest import lost

Singles = npt.NDArray[np.float32]
ACTIONS = 3  # of each job: one more worker, one more server, both


class Jobs:
    """The jobs of all slots: arrays of (B, J, ...)."""

    def __init__(self, batch: int, width: int, features: int) -> None:
        shape = (batch, width)
        self.kind: Ints = np.zeros(shape, dtype=np.int64)
        self.workers: Ints = np.zeros(shape, dtype=np.int64)
        self.servers: Ints = np.zeros(shape, dtype=np.int64)
        self.parts: Floats = np.zeros((*shape, 2, 3))  # of the cluster, that a worker and a server take
        self.needs: Floats = np.zeros((*shape, ACTIONS, 3))  # what each action takes
        self.may: Mask = np.zeros((*shape, ACTIONS), dtype=np.bool_)  # whether the job itself allows it
        self.undone: Floats = np.zeros(shape)  # work left, as part of the whole
        self.left: Floats = np.zeros(shape)  # work left, in slots at the job's peak speed
        self.age: Floats = np.zeros(shape)  # slots since arrival
        self.features: Singles = np.zeros((*shape, features), dtype=np.float32)

    def widened(self, width: int) -> Jobs:
        """Return the same with room for more jobs."""
        batch, before, features = self.features.shape
        wide = Jobs(batch, width, features)
        for name, array in vars(self).items():
            getattr(wide, name)[:, :before] = array
        return wide


class SlotArrays:
    """Arrays with a row per slot, and a column per job where they are about jobs."""

    def __init__(self, batch: int, width: int, of_job: int, of_cluster: int) -> None:
        self.batch = batch
        self.width = width
        self.kinds = Kinds()
        self.jobs = Jobs(batch, width, of_job)
        self.count: Ints = np.zeros(batch, dtype=np.int64)  # jobs
        self.room: Floats = np.zeros((batch, 3))  # what is free, as parts of the cluster
        self.smallest: Floats = np.zeros((batch, 3))  # what all jobs take at their smallest sizes
        self.rows: list[Ints] = [np.zeros(0, dtype=np.int64)] * batch  # of the job table, by job
        self.left: list[Floats] = [np.zeros(0)] * batch  # by row of the job table: slots at the peak speed
        self.cluster: Singles = np.zeros((batch, of_cluster), dtype=np.float32)

    def delay(self, at: Ints, j: Ints) -> Floats:
        """What these jobs will lose in the slot against their peak speed, in slots."""
        jobs, kinds = self.jobs, self.kinds
        kind = jobs.kind[at, j]
        size = kinds.base[kind] + jobs.workers[at, j] * kinds.stride[kind] + jobs.servers[at, j]
        return lost(kinds.speeds[size] / kinds.peak[kind], jobs.left[at, j])
