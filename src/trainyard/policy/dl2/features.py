"""What a learned policy sees of jobs and cluster: numbers of moderate size that do not depend on its scale.

A job's numbers depend on the job alone, so that one action changes the numbers of one job. With `names`, the
kinds of jobs are told apart by one more number each (1 for the job's own profile name, else 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trainyard.model.cluster import Floats, Ints
from trainyard.policy.predict import Told
from trainyard.policy.snapshot import Column

if TYPE_CHECKING:
    from trainyard.policy.dl2.slot import Slots

C = Column
Singles = npt.NDArray[np.float32]
LONG = 1e3  # slots: more make no difference
FEW = 1e-3  # of the peak speed: less counts as this

# Those that stay as they are through the slot.
FIXED = (
    "there is a job",
    "work left, as part of the whole",
    "work left, log slots at the peak speed",
    "log slots since arrival",
    "log GPU-slots attained",
    "has servers of its own",
    "dominant part of the cluster that a worker takes, times jobs",
    "dominant part of the cluster that a server takes, times jobs",
    "log workers held before",
    "log servers held before",
    "slots that a restart takes",
)
# Those that follow from the size given so far.
MOVING = (
    "dominant share",
    "dominant share, times jobs",
    "log workers",
    "log servers",
    "workers, as part of the most",
    "servers, as part of the most",
    "speed, as part of the peak",
    "speed gained by a worker, as part of the peak",
    "speed gained by a server",
    "speed gained by both",
    "log speed with a worker over speed",
    "log speed with a server over speed",
    "log speed with both over speed",
    "most speed gained per task within five tasks",
    "work left, log slots at this speed",
)
CLUSTER = (
    "GPUs free",
    "CPUs free",
    "memory free",
    "log jobs",
    "log of how many more of its smallest size each job could have",
)


class Features:
    """The numbers, and where each stands."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names
        self.labels = (*FIXED, *names, *MOVING)
        self.of_job = len(self.labels)
        self.of_cluster = len(CLUSTER)
        self.moving = slice(self.of_job - len(MOVING), self.of_job)

    def fixed(self, slots: Slots, b: int, beliefs: Told, slot_s: float) -> Floats:
        """Numbers of the jobs of slot b that stay through it; the others are left open."""
        snapshot, rows = beliefs.snapshot, slots.rows[b]
        n, table = rows.size, snapshot.table
        active = table.data[:, rows]
        dominant = slots.parts[b, :n].max(axis=2) * n
        values = np.zeros((n, self.of_job))
        values[:, 0] = 1.0
        values[:, 1] = beliefs.left[rows] / active[C.TOTAL]
        values[:, 2] = np.log1p(np.minimum(slots.left[b, :n], LONG))
        values[:, 3] = np.log1p((snapshot.now_s - active[C.ARRIVAL]) / slot_s)
        attained = active[C.ATTAINED] + active[C.HELD] * (snapshot.now_s - active[C.HELD_SINCE])
        values[:, 4] = np.log1p(attained / slot_s)
        values[:, 5] = slots.apart[b, :n]
        values[:, 6:8] = dominant
        values[:, 8] = np.log1p(active[C.HELD])
        running, jobs = snapshot.running, [table.jobs[row] for row in rows.tolist()]
        held = [running.get(job.job_id) for job in jobs]
        values[:, 9] = np.log1p([0 if has is None else has.servers for has in held])
        values[:, 10] = np.array([snapshot.restart_cost(job) for job in jobs]) / slot_s
        if self.names:
            index = {name: i for i, name in enumerate(self.names, len(FIXED))}
            which = [index.get(slots.kinds.names[kind], -1) for kind in slots.kind[b, :n].tolist()]
            known = np.flatnonzero(np.array(which) >= 0)
            values[known, np.array(which)[known]] = 1.0
        return values

    def of_size(self, slots: Slots, at: Ints, j: Ints) -> Floats:
        """Numbers of these jobs that follow from their sizes."""
        kinds, kind = slots.kinds, slots.kind[at, j]
        w, p, jobs = slots.workers[at, j], slots.servers[at, j], slots.count[at]
        most_w, most_p = slots.most_workers[at, j], slots.most_servers[at, j]
        base, stride, peak = kinds.base[kind], kinds.stride[kind], kinds.peak[kind]
        more_w = np.minimum(np.where(w, w + 1, slots.least[at, j]), most_w) * stride + base
        more_p = np.minimum(p + 1, most_p)
        here = base + w * stride
        speeds = kinds.speeds[np.stack([here + p, more_w + p, here + more_p, more_w + more_p])] / peak
        now, log = speeds[0], np.log(np.maximum(speeds, FEW))
        share = (w[:, None] * slots.parts[at, j, 0] + p[:, None] * slots.parts[at, j, 1]).max(axis=1)
        left = slots.left[at, j] / np.maximum(now, FEW)
        values = np.empty((len(MOVING), at.size))
        values[0], values[1] = share, share * jobs
        np.log1p([w, p], out=values[2:4])
        values[4], values[5] = w / most_w, p / np.maximum(most_p, 1)
        values[6] = now
        np.subtract(speeds[1:], now, out=values[7:10])
        np.subtract(log[1:], log[0], out=values[10:13])
        values[13] = kinds.ahead[here + p]
        values[14] = np.log1p(np.minimum(left, LONG))
        return values.T

    def cluster(self, slots: Slots, at: Ints, out: Singles) -> None:
        """Numbers of the clusters of these slots."""
        jobs = np.maximum(slots.count[at], 1)
        room = np.maximum(slots.room[at], 0.0)
        smallest = slots.smallest[at]
        out[at, :3] = room
        out[at, 3] = np.log1p(jobs)
        out[at, 4] = np.log1p((room / np.maximum(smallest, 1e-9)).min(axis=1))
