"""Size stage: AlloX (Le et al., EuroSys'20), jobs on machines of different speeds by min-cost matching.

Running jobs are left alone. Waiting jobs are matched with slots (machine, k-th from the end): there a job of
p seconds delays itself and the k - 1 jobs behind it, and all of them wait for what runs on the machine now,

    cost = k x p + seconds until the machine is free

so that the matching of least cost has the least sum of completion times. Jobs that come first on a machine
that is free start now. With `alpha` below 1 only the alpha x n jobs that have waited longest take part (but
as many as there are free machines), which is the paper's fairness.

The paper's jobs have one worker each. For gangs a machine is a group of GPUs of one type, as many as the
average waiting job asks for, and a job that asks for more than the average delays those behind it as much
more: cost = p + (k - 1) x p x gpus / average + wait. With gangs of one size, one worker or more, that is the
same formula, and exact; a gang starts when its type has enough idle GPUs.

Of the slots of a type only those are looked at that can be needed: not where as many slots as there are jobs
are no later and no farther from the end.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.tolerance import SHORT_SECONDS
from trainyard.policy.bounds import within
from trainyard.policy.types.by_type import ByType
from trainyard.policy.types.options import Options, options_of
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

LEAST_ALPHA = 1e-6
NEVER = 1e12  # seconds that a job would take where it cannot run


class AlloX(ByType):
    """Matches waiting jobs with places in the queues of machines."""

    order: ClassVar[str] = "srtf"

    def __init__(self, alpha: float = 1.0) -> None:
        if not 0 < alpha <= 1:
            raise InputError(f"alpha is {alpha:g}; give a number above 0, and 1 at most")
        within("alpha", alpha, LEAST_ALPHA, 1)
        self.alpha = alpha

    def needs(self, job: Job) -> int:
        """Return the gang that the job asks for."""
        return job.gpus

    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return what running jobs hold, and the gangs of those that start."""
        mix = held.copy()
        idle = capacity - held.sum(axis=0)
        waiting = np.flatnonzero(~held.any(axis=1))
        if not waiting.size or not idle.any():
            return mix
        options = options_of(snapshot, ranked[waiting], capacity)
        able = options.speed.any(axis=1)
        waiting, options = waiting[able], Options(options.speed[able], options.use[able])
        gpus = snapshot.table.column(Column.GPUS)[ranked[waiting]]
        lane = max(1, round(float(gpus.mean()))) if gpus.size else 1
        taken = self._oldest(snapshot, ranked[waiting], int((idle // lane).sum()))
        waiting, gpus = waiting[taken], gpus[taken]
        options = Options(options.speed[taken], options.use[taken])
        slots = slots_of(_until_free(snapshot, ranked, held, capacity, lane), waiting.size)
        left = snapshot.remaining_samples()[ranked[waiting]]
        seconds = np.where(
            options.speed > 0, left[:, None] / np.where(options.speed > 0, options.speed, 1.0), NEVER
        )
        for j, type_ in starts(seconds, gpus / float(lane), slots):
            use = options.use[j, type_]
            if (use <= idle).all() and use.any():
                idle -= use
                mix[waiting[j]] = use
        return mix

    def _oldest(self, snapshot: Snapshot, rows: Ints, free: int) -> Ints:
        """Positions of those that may start: the part alpha that came first."""
        count = max(int(np.ceil(self.alpha * rows.size)), min(free, rows.size))
        if count >= rows.size:
            return np.arange(rows.size)
        first = np.lexsort(
            (snapshot.table.column(Column.SEQ)[rows], snapshot.table.column(Column.ARRIVAL)[rows])
        )
        oldest: Ints = np.sort(first[:count])
        return oldest


class Slots(NamedTuple):
    """Places in the queues of all machines."""

    type: Ints
    machine: Ints  # within its type
    position: Ints  # from the end, 1 is last
    wait_s: Floats  # until the machine is free


def slots_of(free_s: list[Floats], jobs: int) -> Slots:
    """Return the slots that this number of jobs could need, given when each machine is free."""
    parts: list[tuple[Ints, Ints, Ints, Floats]] = []
    for type_, waits in enumerate(free_s):
        waits = np.sort(waits)
        before = np.searchsorted(waits, waits)  # machines that are free earlier
        alike = np.searchsorted(waits, waits, side="right") - before
        for k in range(1, jobs + 1):
            better = before * k + (k - 1) * alike + np.arange(waits.size) - before
            machine = np.flatnonzero(better < jobs)
            if not machine.size:
                break
            shape = machine.size
            parts.append((np.full(shape, type_), machine, np.full(shape, k), waits[machine]))
    if not parts:
        nothing: Ints = np.zeros(0, dtype=np.int64)
        return Slots(nothing, nothing, nothing, np.zeros(0))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Slots(columns[0], columns[1], columns[2], columns[3])


def match(seconds: Floats, weight: Floats, slots: Slots) -> tuple[Ints, Ints]:
    """Return jobs and the slots that they are matched with; as many jobs as there are slots for.

    `seconds` is how long each job takes on each type, `weight` its size relative to the average.
    """
    from scipy.optimize import linear_sum_assignment  # only this policy needs it

    behind = 1.0 + np.outer(weight, slots.position - 1)
    jobs, chosen = linear_sum_assignment(seconds[:, slots.type] * behind + slots.wait_s)
    return jobs, chosen


def starts(seconds: Floats, weight: Floats, slots: Slots) -> list[tuple[int, int]]:
    """Return (job, type) of those that should run next on machines that are free, shortest first.

    Gangs of several sizes need not fit exactly: then those behind the first come after them, and those of
    machines that are not free last, so that no GPUs stay idle which a job in the queues of their type
    could use.
    """
    if not slots.type.size:
        return []
    jobs, chosen = match(seconds, weight, slots)
    type_, machine, position, wait_s = (column[chosen] for column in slots)
    spent = seconds[jobs, type_]
    order = np.lexsort((jobs, spent, -position, machine, type_))
    new = np.r_[True, (type_[order][1:] != type_[order][:-1]) | (machine[order][1:] != machine[order][:-1])]
    began = np.flatnonzero(new)
    turn: Ints = np.empty(order.size, dtype=np.int64)
    turn[order] = np.arange(order.size) - began[np.cumsum(new) - 1]  # 0: first in its queue
    now = np.flatnonzero(spent < NEVER)
    now = now[np.lexsort((jobs[now], spent[now], turn[now], wait_s[now] > 0))]
    if not np.ptp(weight):
        now = now[(turn[now] == 0) & (wait_s[now] <= 0)]
    return list(zip(jobs[now].tolist(), type_[now].tolist(), strict=True))


def _until_free(snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, lane: int) -> list[Floats]:
    """Seconds until each group of `lane` GPUs of each type is free, by the speeds of what runs there."""
    table = snapshot.table
    rate = table.column(Column.RATE)[ranked]
    stall = np.maximum(table.column(Column.SINCE)[ranked] - snapshot.now_s, 0.0)
    left = snapshot.remaining_samples()[ranked]
    busy_s = stall + left / np.where(rate > 0, rate, 1.0)
    free_s = []
    for type_, gpus in enumerate(capacity.tolist()):
        busy = np.sort(np.repeat(busy_s, held[:, type_]))
        waits = np.concatenate([np.zeros(max(gpus - busy.size, 0)), np.maximum(busy, SHORT_SECONDS)])
        free_s.append(waits[lane - 1 :: lane] if gpus >= lane else waits[-1:])
    return free_s
