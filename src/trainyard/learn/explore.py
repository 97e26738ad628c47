"""Job-aware exploration (the paper's): out of states that no good policy would be in, a step is forced.

A state is poor if a job has many times more tasks of one kind than of the other, or many times more than
another job has; the step is a task of the rarer kind, or one for the job that has least.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints, Mask
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.slot import BOTH, SERVER, STOP, WORKER, Slots

TIMES = 10  # this many times more is too many


def way_out(slots: Slots, mask: Mask) -> Ints:
    """Return the legal step that leads out of a poor state, stop where there is none to take."""
    workers, servers = slots.jobs.workers, slots.jobs.servers
    legal = mask[:, 1:].reshape(slots.batch, slots.width, ACTIONS)
    apart = (
        slots.kinds.apart[slots.jobs.kind] if slots.kinds.names else np.zeros_like(workers, dtype=np.bool_)
    )
    wanted: Mask = np.zeros_like(legal)
    wanted[..., WORKER] = apart & (servers > TIMES * workers)
    wanted[..., SERVER] = apart & (workers > TIMES * servers)
    there = np.arange(slots.width) < slots.count[:, None]
    tasks = workers + servers
    most = np.where(there, tasks, 0).max(axis=1)
    least = np.where(there, tasks, np.iinfo(np.int64).max)
    behind = there & (tasks == least.min(axis=1, keepdims=True)) & (most > TIMES * least.min(axis=1))[:, None]
    wanted[..., BOTH] |= behind & apart
    wanted[..., WORKER] |= behind & ~apart
    steps = (wanted & legal).reshape(slots.batch, -1)
    return np.where(steps.any(axis=1), 1 + steps.argmax(axis=1), STOP)
