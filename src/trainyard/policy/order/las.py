"""Order: least attained service (Gu et al., Tiresias, NSDI'19)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from itertools import pairwise
from math import inf
from struct import Struct
from typing import cast

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints
from trainyard.model.limits import LARGEST
from trainyard.model.tolerance import PART, ROUGH_PART
from trainyard.policy.bounds import within
from trainyard.policy.choose.lines import lines_of
from trainyard.policy.choose.walk import Keys
from trainyard.policy.order.by_key import SteadyOrder
from trainyard.policy.stages import Changes
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column
as_float, as_int = Struct("<d"), Struct("<q")

SEQ_BITS = 40  # level and seq make one exact key: no ties, one sort


LEAST_SERVICE = 1e-3  # of a threshold: seconds or GPU-seconds
MOST_QUEUES = 64
DROPPED_BITS = 52 - 6  # of a double's fraction: what is left tells numbers apart that differ by 1.6%


class Las(SteadyOrder):
    """Least attained service first; with thresholds, discretised into queues (Tiresias, NSDI'19).

    Service is GPU-time (`threshold_gpu_s`) or plain run time (`threshold_s`). Without thresholds, services
    that differ by less than 2% count as equal: else jobs that are level would take turns at every event. With
    thresholds, jobs that run come before jobs that wait inside a queue, then first come, first served; a job
    that reaches the end of its queue moves on at that moment, not only when something else happens.
    """

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
        for limit in limits:
            within("threshold", limit, LEAST_SERVICE, LARGEST)
        within("number of thresholds", len(limits), 0, MOST_QUEUES - 1)
        self.in_gpu_time = not threshold_s
        self.limits: Floats = np.array(limits, dtype=np.float64) * (1 - ROUGH_PART)
        self.queued = int(self.limits.size > 0)  # whether jobs that run come before those that wait
        self.takes_turns = not self.queued
        self.limits_list: list[float] = self.limits.tolist()
        self.ends: list[float] = (self.limits / (1 - ROUGH_PART)).tolist()

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
            level += snapshot.table.column(C.GIVEN) == 0
        level <<= SEQ_BITS
        level += snapshot.table.column(C.SEQ).astype(np.int64)
        return level

    def waiting_key(self, record: Record) -> float:
        """Return the same of one job."""
        service = record.attained if self.in_gpu_time else record.executed
        return (self._level(service) + self.queued << SEQ_BITS) + record.seq

    def key_of(self, record: Record, now_s: float) -> float:
        """Return the same of one job."""
        spent = now_s - record.given_since if record.rate else 0.0
        service = record.attained + record.given * spent if self.in_gpu_time else record.executed + spent
        return (self._level(service) << SEQ_BITS) + record.seq

    def line(self, record: Record) -> tuple[Hashable, float]:
        """Service of running jobs grows in proportion to their GPUs, or all alike; else it stays."""
        if not record.rate:
            return 0, record.attained if self.in_gpu_time else record.executed
        if self.in_gpu_time:
            return record.given, record.attained / record.given - record.given_since
        return 1, record.executed - record.given_since

    def motion(self, line: Hashable) -> tuple[float, float]:
        """The measure is the service."""
        return (float(cast(int, line)), 1.0) if line else (1.0, 0.0)

    def bound(self, measure: float, now_s: float) -> float:
        """Return the end of the level that this service leads to."""
        return self._level(max(measure, 0.0) * (1 + PART) + PART * now_s) + 1 << SEQ_BITS

    def least(self, key: float, now_s: float) -> float:
        """Return the service at which the level of the key begins."""
        level = int(key) >> SEQ_BITS
        if not self.queued:
            begins: float = as_float.unpack(as_int.pack(level << DROPPED_BITS))[0]
        else:
            begins = self.limits_list[level // 2 - 1] if level > 1 else 0.0
        return begins * (1 - PART) - PART * now_s

    def _level(self, service: float) -> int:
        """Return the level of a job that runs with this service."""
        if self.queued:
            return 2 * bisect_right(self.limits_list, service)
        level: int = as_int.unpack(as_float.pack(service))[0] >> DROPPED_BITS
        return level

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when the next job reaches the end of its queue."""
        if not self.queued:
            return inf
        now_s, next_s = snapshot.now_s, inf
        for name, line in lines_of(self, snapshot).running.items():
            pace = cast(int, name)
            if not pace:
                continue  # these wait for others to leave their nodes
            for limit, end in zip(self.limits_list, self.ends, strict=True):
                last = bisect_left(line, (limit / pace - now_s,))  # all before have not come so far
                stays = (record for _, _, record in reversed(line[:last]) if record.job_id not in changes)
                if (record := next(stays, None)) is not None:
                    next_s = min(next_s, self._reached_s(record, pace, end))
        for job_id, allocation in changes.items():
            if allocation is not None:
                record = snapshot.table.of[job_id]
                k = bisect_right(self.limits_list, self._served(record, now_s))
                if k < len(self.ends):
                    pace = allocation.gpus if self.in_gpu_time else 1
                    next_s = min(next_s, now_s + (self.ends[k] - self._served(record, now_s)) / pace)
        return next_s

    def _reached_s(self, record: Record, pace: int, end: float) -> float:
        """When a job that runs reaches the end of a queue."""
        before = record.attained if self.in_gpu_time else record.executed
        return record.given_since + (end - before) / pace

    def _served(self, record: Record, now_s: float) -> float:
        """Service of one job up to now."""
        return record.attained_gpu_s(now_s) if self.in_gpu_time else record.executed_s(now_s)
