"""The DL2 paper's own state: six numbers of each job, without any scaling, in a fixed number of columns."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.dl2.arrays import SlotArrays
from trainyard.policy.size.dl2.features import Features
from trainyard.state.snapshot import Snapshot

MATRIX = (
    "number of its name, 0 for none of the names",
    "slots since arrival",
    "work left, as part of the whole",
    "dominant share",
    "workers",
    "servers",
)
FIXED = 3  # of them stay through the slot


class Raw(Features):
    """The paper's numbers in place of ours."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        super().__init__(names)
        self.labels = MATRIX
        self.of_job = len(MATRIX)
        self.moving = slice(FIXED, len(MATRIX))

    def fixed(self, slots: SlotArrays, b: int, snapshot: Snapshot, slot_s: float) -> Floats:
        """Numbers of the jobs of slot b that stay through it; the others are left open."""
        n, jobs = int(slots.count[b]), slots.jobs
        values = np.zeros((self.of_job, n))
        values[0] = self.number(slots.kinds.names)[jobs.kind[b, :n]]
        values[1:FIXED] = jobs.age[b, :n], jobs.undone[b, :n]
        return values.T

    def of_size(self, slots: SlotArrays, at: Ints, j: Ints) -> Floats:
        """Numbers of these jobs that follow from their sizes."""
        workers, servers, parts = (
            a[at, j] for a in (slots.jobs.workers, slots.jobs.servers, slots.jobs.parts)
        )
        share = (workers[:, None] * parts[:, 0] + servers[:, None] * parts[:, 1]).max(axis=1)
        return np.stack([share, workers, servers], axis=1)
