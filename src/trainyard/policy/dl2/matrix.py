"""The DL2 paper's own state: six rows by so many jobs, without any scaling."""

from __future__ import annotations

import numpy as np

from trainyard.policy.dl2.features import Singles
from trainyard.policy.dl2.slot import Slots

# Type of the job (1 for the first name, 0 for none of the names), slots since arrival, part of its work
# left, dominant share, workers, servers.
MATRIX_ROWS = 6


def matrix(slots: Slots, window: int) -> Singles:
    """Return (B, 6, window): the first jobs of each slot in order, zeros where there are fewer."""
    state: Singles = np.zeros((slots.batch, MATRIX_ROWS, window), dtype=np.float32)
    n, jobs = min(window, slots.width), slots.jobs
    workers, servers, parts = jobs.workers[:, :n], jobs.servers[:, :n], jobs.parts[:, :n]
    held = workers[:, :, None] * parts[:, :, 0] + servers[:, :, None] * parts[:, :, 1]
    number = slots.features.number(["", *slots.kinds.names])[1 + jobs.kind[:, :n]]
    rows = (number, jobs.age[:, :n], jobs.undone[:, :n], held.max(axis=2), workers, servers)
    there = np.arange(n) < slots.count[:, None]
    for i, values in enumerate(rows):
        state[:, i, :n] = np.where(there, values, 0.0)
    return state
