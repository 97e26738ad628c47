"""What a learned policy sees of jobs and cluster: numbers of moderate size that do not depend on its scale.

A job's numbers depend on the job alone, so that one action changes the numbers of one job. With `names`, the
kinds of jobs are told apart by one more number each (1 for the job's own profile name, else 0).
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.dl2.arrays import SlotArrays
from trainyard.policy.size.steepest import lost
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
LONG = 1e3  # slots: more make no difference
LEAST_PART = 1e-3  # of the peak speed, or of a cluster: less counts as this
LITTLE = 1e-2  # slots saved per fair share: less counts as this
AHEAD = 8  # tasks
MORE_WORKERS, MORE_SERVERS = np.array(
    [(w, p) for w in range(AHEAD + 1) for p in range(AHEAD + 1) if 0 < w + p <= AHEAD]
).T
WITH = (MORE_WORKERS > 0, MORE_SERVERS > 0, (MORE_WORKERS > 0) & (MORE_SERVERS > 0))

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
    "log workers at the peak speed",
    "log servers at the peak speed",
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
    "root of the speed gained by a worker, as part of the peak",
    "root of the speed gained by a server",
    "root of the speed gained by both",
    "log speed with a worker over speed",
    "log speed with a server over speed",
    "log speed with both over speed",
    "log of the most delay saved per fair share within eight tasks, a worker among them",
    "log of the most delay saved per fair share within eight tasks, a server among them",
    "log of the most delay saved per fair share within eight tasks, both among them",
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

    def fixed(self, slots: SlotArrays, b: int, snapshot: Snapshot, slot_s: float) -> Floats:
        """Numbers of the jobs of slot b that stay through it; the others are left open."""
        rows, n, table, jobs = slots.rows[b], int(slots.count[b]), snapshot.table, slots.jobs
        held, since, attained = table.data[[C.GIVEN, C.GIVEN_SINCE, C.ATTAINED]][:, rows]
        each = [table.jobs[row] for row in rows.tolist()]
        has = [snapshot.target.get(job.job_id) for job in each]
        values = np.zeros((self.of_job, n))
        values[0] = 1.0
        values[1] = jobs.undone[b, :n]
        values[2] = np.log1p(np.minimum(jobs.left[b, :n], LONG))
        values[3] = np.log1p(jobs.age[b, :n])
        values[4] = np.log1p((attained + held * (snapshot.now_s - since)) / slot_s)
        values[5] = slots.kinds.apart[jobs.kind[b, :n]]
        values[6:8] = jobs.parts[b, :n].max(axis=2).T * n
        values[8] = np.log1p(held)
        values[9] = np.log1p([0 if holds is None else holds.servers for holds in has])
        values[10:12] = np.log1p(slots.kinds.best[:, jobs.kind[b, :n]])
        values[12] = [snapshot.restart_cost(job) for job in each]
        values[12] /= slot_s
        if self.names:
            number = self.number(slots.kinds.names)[jobs.kind[b, :n]]
            values[len(FIXED) : len(FIXED) + len(self.names)] = (
                number == np.arange(1, len(self.names) + 1)[:, None]
            )
        return values.T

    def number(self, names: list[str]) -> Ints:
        """Return which of the names each is, from 1; 0 if none."""
        index = {name: i for i, name in enumerate(self.names, 1)}
        return np.array([index.get(name, 0) for name in names], dtype=np.int64)

    def of_size(self, slots: SlotArrays, at: Ints, j: Ints) -> Floats:
        """Numbers of these jobs that follow from their sizes."""
        kinds, jobs = slots.kinds, slots.jobs
        kind, w, p, parts = (array[at, j] for array in (jobs.kind, jobs.workers, jobs.servers, jobs.parts))
        most_w, most_p = kinds.most_workers[kind], kinds.most_servers[kind]
        base, stride = kinds.base[kind], kinds.stride[kind]
        here, more_p = base + w * stride, np.minimum(p + 1, most_p)
        more_w = base + np.minimum(np.where(w, w + 1, kinds.least[kind]), most_w) * stride
        speeds = (
            kinds.speeds[np.stack([here + p, more_w + p, here + more_p, more_w + more_p])] / kinds.peak[kind]
        )
        now, log = speeds[0], np.log(np.maximum(speeds, LEAST_PART))
        share = (w[:, None] * parts[:, 0] + p[:, None] * parts[:, 1]).max(axis=1)
        left = jobs.left[at, j] / np.maximum(now, LEAST_PART)
        values = np.empty((len(MOVING), at.size))
        values[0], values[1] = share, share * slots.count[at]
        np.log1p([w, p], out=values[2:4])
        values[4], values[5] = w / most_w, p / np.maximum(most_p, 1)
        values[6] = now
        gained = speeds[1:] - now
        values[7:10] = np.copysign(np.sqrt(np.abs(gained)), gained)  # small gains decide, so roots
        np.subtract(log[1:], log[0], out=values[10:13])
        values[13:16] = np.log(np.maximum(ahead(slots, at, j), LITTLE))
        values[16] = np.log1p(np.minimum(left, LONG))
        return values.T

    def of_clusters(self, slots: SlotArrays, at: Ints) -> None:
        """Note the numbers of the clusters of these slots."""
        room = np.maximum(slots.room[at], 0.0)
        slots.cluster[at, :3] = room
        slots.cluster[at, 3] = np.log1p(slots.count[at])
        slots.cluster[at, 4] = np.log1p((room / np.maximum(slots.smallest[at], LEAST_PART)).min(axis=1))


def ahead(slots: SlotArrays, at: Ints, j: Ints) -> Floats:
    """Most delay saved per fair share by steps of several tasks, a worker, a server, both among them."""
    kinds, jobs = slots.kinds, slots.jobs
    kind, has, parts, left = jobs.kind[at, j], jobs.workers[at, j], jobs.parts[at, j], jobs.left[at, j]
    base, stride, peak = kinds.base[kind][:, None], kinds.stride[kind][:, None], kinds.peak[kind][:, None]
    workers = np.where(has, has, kinds.least[kind] - 1)[:, None] + MORE_WORKERS
    servers = jobs.servers[at, j][:, None] + MORE_SERVERS
    most_w, most_p = kinds.most_workers[kind][:, None], kinds.most_servers[kind][:, None]
    size = base + np.minimum(workers, most_w) * stride + np.minimum(servers, most_p)
    saved = slots.delay(at, j)[:, None] - lost(kinds.speeds[size] / peak, left[:, None])
    takes = MORE_WORKERS[:, None] * parts[:, None, 0] + MORE_SERVERS[:, None] * parts[:, None, 1]
    saved /= np.maximum(takes.max(axis=2) * slots.count[at][:, None], LEAST_PART)
    saved[(workers > most_w) | (servers > most_p)] = 0.0
    return np.array([saved[:, some].max(axis=1) for some in WITH])
