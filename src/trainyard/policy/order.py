"""Order stages: who goes first."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from struct import pack, unpack
from typing import ClassVar

import numpy as np

from trainyard.errors import InputError
from trainyard.model.allocation import Wakes
from trainyard.model.cluster import Floats, Ints
from trainyard.policy.select import Keys, by_key, take_in_order
from trainyard.policy.snapshot import Column, Snapshot
from trainyard.policy.stages import Changes, Fill, Order

C = Column
SEQ_BITS = 40  # level and seq make one exact key: no ties, one sort
DROPPED_BITS = 52 - 6  # of a double's fraction: what is left tells numbers apart that differ by 1.6%
SLACK = 1e-6  # a job demoted exactly on time may lack a rounding error's worth of service


class KeyOrder(Order):
    """A preemptive order: active jobs by ascending key."""

    steady: ClassVar[bool] = False  # whether the key of a job stays the same as long as it waits

    @abstractmethod
    def key(self, snapshot: Snapshot) -> Keys:
        """Return one number per active job; the smallest goes first, ties in order of submission."""

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the key of one waiting job, for orders that are steady."""
        return float(self.key(snapshot)[row])

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank all active jobs."""
        return by_key(self.key(snapshot), snapshot.table.column(C.SEQ))

    def choose(self, snapshot: Snapshot, demand: Floats) -> Ints:
        """Return the rows that fit at once, sorting no more than necessary."""
        seq, about = snapshot.table.column(C.SEQ), len(snapshot.running) + 32
        return take_in_order(self.key(snapshot), seq, demand, snapshot.up_gpus, about)


class Fifo(Order):
    """First come, first served; running jobs are never disturbed."""

    preemptive: ClassVar[bool] = False

    def __init__(self, fill: Fill = "strict") -> None:
        self.fill = fill

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank waiting jobs by submission."""
        return snapshot.waiting_rows()

    def heads(self, snapshot: Snapshot) -> Iterator[int]:
        """Yield waiting jobs without looking at the whole queue."""
        return map(snapshot.table.row_of.__getitem__, snapshot.waiting)


class Sjf(Order):
    """Shortest predicted run time first; running jobs are never disturbed."""

    preemptive: ClassVar[bool] = False

    def __init__(self, fill: Fill = "strict") -> None:
        self.fill = fill

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank waiting jobs by predicted remaining time."""
        rows = snapshot.waiting_rows()
        ranked: Ints = rows[np.argsort(snapshot.remaining_s()[rows], kind="stable")]
        return ranked


class Srtf(KeyOrder):
    """Shortest remaining time first."""

    steady: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining seconds."""
        return snapshot.remaining_s()

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the same of one job."""
        return snapshot.remaining_s_of(row)


class Srsf(KeyOrder):
    """Smallest remaining service (GPU-time) first."""

    steady: ClassVar[bool] = True

    def key(self, snapshot: Snapshot) -> Floats:
        """Predicted remaining GPU-seconds."""
        left: Floats = snapshot.remaining_s() * snapshot.table.column(C.GPUS)
        return left

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the same of one job."""
        return snapshot.remaining_s_of(row) * snapshot.table.cells[C.GPUS][row]


class Las(KeyOrder):
    """Least attained service first; with thresholds, discretised into queues (Tiresias, NSDI'19).

    Service is GPU-time (`threshold_gpu_s`) or plain run time (`threshold_s`). Without thresholds, services
    that differ by less than 2% count as equal: else jobs that are level would take turns at every event. With
    thresholds, jobs that run come before jobs that wait inside a queue, then first come, first served; a job
    that reaches the end of its queue moves on at that moment, not only when something else happens.
    """

    steady: ClassVar[bool] = True

    def __init__(
        self,
        queues: int | None = None,
        threshold_gpu_s: tuple[float, ...] = (),
        threshold_s: tuple[float, ...] = (),
    ) -> None:
        if threshold_gpu_s and threshold_s:
            raise InputError("las takes threshold_gpu_s or threshold_s, not both")
        limits = threshold_gpu_s or threshold_s
        if any(a >= b for a, b in pairwise(limits)):
            raise InputError(f"thresholds must grow, but are {':'.join(f'{x:g}' for x in limits)}")
        if queues is not None and queues != len(limits) + 1:
            raise InputError(f"{queues} queues need {queues - 1} thresholds (a:b:c), {len(limits)} given")
        self.in_gpu_time = not threshold_s
        self.limits: Floats = np.array(limits, dtype=np.float64) * (1 - SLACK)
        self.limits_list: list[float] = self.limits.tolist()
        self.ends: list[float] = (self.limits / (1 - SLACK)).tolist()

    def _service(self, snapshot: Snapshot) -> Floats:
        return snapshot.attained_gpu_s() if self.in_gpu_time else snapshot.executed_s()

    def _queue(self, service: Floats) -> Ints:
        queue: Ints = (service >= self.limits[0]).astype(np.int64)
        for limit in self.limits[1:]:
            queue += service >= limit
        return queue

    def key(self, snapshot: Snapshot) -> Keys:
        """Attained service to 2%, or the queue it leads to and the place in it."""
        service = self._service(snapshot)
        if not self.limits.size:
            level = service.view(np.int64) >> DROPPED_BITS
        else:
            level = self._queue(service)
            level *= 2
            level += snapshot.table.column(C.HELD) == 0
        level <<= SEQ_BITS
        level += snapshot.table.column(C.SEQ).astype(np.int64)
        return level

    def waiting_key(self, snapshot: Snapshot, row: int) -> float:
        """Return the same of one job."""
        service = self._served(snapshot, row)
        if self.limits.size:
            level = 2 * bisect_right(self.limits_list, service) + 1
        else:
            level = unpack("<q", pack("<d", service))[0] >> DROPPED_BITS
        return (level << SEQ_BITS) + int(snapshot.table.cells[C.SEQ][row])

    def wakes(self, snapshot: Snapshot, changes: Changes) -> Wakes:
        """Return when each job will reach the end of each queue still before it."""
        if not self.limits.size:
            return ()
        wakes: list[tuple[str, float]] = []
        for job_id, allocation in changes.items():
            if allocation is not None:
                served = self._served(snapshot, snapshot.table.row_of[job_id])
                speed = allocation.gpus if self.in_gpu_time else 1
                after = ((limit - served) / speed for limit in self.ends if served < limit)
                wakes += [(job_id, snapshot.now_s + wait_s) for wait_s in after]
        return tuple(wakes)

    def _served(self, snapshot: Snapshot, row: int) -> float:
        """Service of one job up to now."""
        cells = snapshot.table.cells
        spent_s = snapshot.now_s - cells[C.HELD_SINCE][row]
        if self.in_gpu_time:
            return cells[C.ATTAINED][row] + cells[C.HELD][row] * spent_s
        return cells[C.EXECUTED][row] + (spent_s if cells[C.HELD][row] else 0.0)


class Tiresias(Las):
    """Two-queue discretised LAS on GPU-time (Gu et al., NSDI'19)."""

    def __init__(self, threshold_gpu_s: tuple[float, ...] = (18000.0,)) -> None:
        super().__init__(threshold_gpu_s=threshold_gpu_s)


class Ftf(KeyOrder):
    """Finish-time fairness (Themis, NSDI'20): the job that is worst off goes first.

    rho = (time in the system + predicted remaining time) / run time with an equal share of the cluster.
    """

    def key(self, snapshot: Snapshot) -> Floats:
        """Minus rho."""
        table = snapshot.table
        total_s = table.column(C.TOTAL) / table.column(C.REFERENCE_RATE)
        crowding = table.column(C.GPUS) * snapshot.contention() / max(snapshot.up_gpus, 1)
        fair_s = total_s * np.maximum(crowding, 1.0)
        shared_s = snapshot.now_s - table.column(C.ARRIVAL) + snapshot.remaining_s()
        rho: Floats = -table.column(C.WEIGHT) * shared_s / fair_s
        return rho
