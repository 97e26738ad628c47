"""What a policy sees: active jobs and free resources, as arrays, at one moment.

The engine keeps these arrays up to date and lends them out; a policy reads and never writes them.
`Snapshot.fork` gives a copy that may be changed (what-if, tests).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, cast

import numpy as np

from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Floats, Ints, NodeTable
from trainyard.model.job import Job
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.policy.levels import levels_of
from trainyard.policy.observed import Observed, Ran


class Column:
    """The columns of a JobTable. Lazy ones hold a value and the moment since which it changes."""

    SEQ: Final = 0  # order of submission: the last tie-break everywhere
    ARRIVAL: Final = 1
    GPUS: Final = 2
    LEAST: Final = 3
    MOST: Final = 4
    WEIGHT: Final = 5
    TYPE: Final = 6  # index of the one GPU type the job accepts, or -1
    TOTAL: Final = 7  # samples
    REFERENCE_RATE: Final = 8  # samples/s with the requested GPUs of speed 1.0
    REMAINING: Final = 9  # samples left at SINCE
    RATE: Final = 10  # samples/s from SINCE on
    SINCE: Final = 11
    HELD: Final = 12  # GPUs held from HELD_SINCE on
    HELD_SINCE: Final = 13
    ATTAINED: Final = 14  # GPU-seconds up to HELD_SINCE
    EXECUTED: Final = 15  # seconds with GPUs up to HELD_SINCE
    MET: Final = 16  # integral of the number of active jobs over time, at arrival
    RESTARTS: Final = 17

    COUNT: Final = 18


C = Column


class JobTable:
    """Active jobs, one row each, rows dense and in no particular order."""

    def __init__(self) -> None:
        self.data: Floats = np.zeros((Column.COUNT, 64))
        self.cells = _cells(self.data)  # the same numbers by column and row, quicker to read one by one
        self.jobs: list[Job] = []
        self.row_of: dict[str, int] = {}
        self.gpus = 0  # requested by all rows together
        self.particular = 0  # rows that ask for CPUs or memory of their own choice

    def __len__(self) -> int:
        return len(self.jobs)

    def column(self, column: int) -> Floats:
        """Return one column over all rows (a view)."""
        view: Floats = self.data[column, : len(self.jobs)]
        return view

    def add(self, job: Job, values: tuple[float, ...]) -> None:
        """Append a row, its values in the order of Column."""
        row = len(self.jobs)
        if row == self.data.shape[1]:
            self.data = np.concatenate([self.data, np.zeros_like(self.data)], axis=1)
            self.cells = _cells(self.data)
        self.jobs.append(job)
        self.gpus += job.gpus
        self.particular += job.particular
        self.row_of[job.job_id] = row
        self.data[:, row] = values

    def remove(self, job_id: str) -> None:
        """Drop a row; the last row takes its place."""
        row = self.row_of.pop(job_id)
        self.gpus -= self.jobs[row].gpus
        self.particular -= self.jobs[row].particular
        last = self.jobs.pop()
        if row < len(self.jobs):
            self.jobs[row] = last
            self.row_of[last.job_id] = row
            self.data[:, row] = self.data[:, len(self.jobs)]

    def fork(self) -> JobTable:
        """Return an independent copy."""
        twin = JobTable()
        twin.data = self.data[:, : max(64, len(self.jobs))].copy()
        twin.cells = _cells(twin.data)
        twin.jobs = self.jobs.copy()
        twin.row_of = self.row_of.copy()
        twin.gpus = self.gpus
        twin.particular = self.particular
        return twin


def _cells(data: Floats) -> list[memoryview[float]]:
    """One view per column."""
    return [cast("memoryview[float]", memoryview(column)) for column in data]


class Free:
    """Free GPUs, CPUs and memory per node; nodes that are down have none."""

    __slots__ = ("cpus", "gpus", "levels", "memory_gb", "plain", "total")

    def __init__(self, gpus: list[int], cpus: list[float], memory_gb: list[float]) -> None:
        self.gpus = gpus
        self.cpus = cpus
        self.memory_gb = memory_gb
        self.total = sum(gpus)
        self.plain = True  # only GPU-proportional shares are out: free GPUs imply free CPUs and memory
        self.levels = levels_of(np.array(gpus, dtype=np.int64))

    @classmethod
    def all_of(cls, nodes: NodeTable) -> Free:
        """Everything free."""
        return cls(nodes.gpus.tolist(), nodes.cpus.tolist(), nodes.memory_gb.tolist())

    def copy(self) -> Free:
        """Return scratch space for trying placements."""
        twin = Free.__new__(Free)
        twin.gpus = self.gpus.copy()
        twin.cpus = self.cpus.copy()
        twin.memory_gb = self.memory_gb.copy()
        twin.total = self.total
        twin.plain = self.plain
        twin.levels = self.levels.copy()
        return twin

    def take(self, index: dict[str, int], shares: tuple[Share, ...]) -> None:
        """Debit what an allocation holds."""
        for node, gpus, _, cpus, memory_gb in shares:
            self.add(index[node], -gpus, -cpus, -memory_gb)

    def give(self, index: dict[str, int], shares: tuple[Share, ...]) -> None:
        """Credit what an allocation held."""
        for node, gpus, _, cpus, memory_gb in shares:
            self.add(index[node], gpus, cpus, memory_gb)

    def add(self, i: int, gpus: int, cpus: float, memory_gb: float) -> None:
        """Change what is free on one node."""
        all_gpus, levels, bit = self.gpus, self.levels, 1 << i
        had = all_gpus[i]
        all_gpus[i] = has = had + gpus
        levels[had] ^= bit
        levels[has] ^= bit
        self.cpus[i] += cpus
        self.memory_gb[i] += memory_gb
        self.total += gpus


class Waiting:
    """Jobs without an allocation, in order of submission. Taking the first one costs nothing."""

    __slots__ = ("_entries", "_first", "blocked", "journal", "lines")

    def __init__(self) -> None:
        self.blocked: str | None = None  # who came first and found no place, if that was found out
        self.lines: object = None  # the same jobs as an order keeps them sorted from decision to decision
        self.journal: list[str] | None = None  # who came or went, if somebody wants to know
        self._entries: list[tuple[float, str]] = []
        self._first = 0  # entries before this one are gone

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def __iter__(self) -> Iterator[str]:
        for i in range(self._first, len(self._entries)):
            yield self._entries[i][1]

    def add(self, seq: float, job_id: str) -> None:
        """Insert in order of submission."""
        if self.journal is not None:
            self.journal.append(job_id)
        entries = self._entries
        if not entries or entries[-1][0] < seq:
            entries.append((seq, job_id))
        else:
            insort(entries, (seq, job_id), lo=self._first)

    def remove(self, seq: float, job_id: str) -> None:
        """Take out; the job must be there."""
        if self.journal is not None:
            self.journal.append(job_id)
        entries = self._entries
        if entries[self._first][0] != seq:
            del entries[bisect_left(entries, (seq, job_id), lo=self._first)]
            return
        self._first += 1
        if self._first * 2 > len(entries):
            del entries[: self._first]
            self._first = 0

    def fork(self) -> Waiting:
        """Return an independent copy."""
        twin = Waiting()
        twin._entries = self._entries[self._first :]
        return twin


@dataclass(slots=True)
class Snapshot:
    """One moment of the yard, as a policy sees it. A job being stopped already counts as waiting."""

    now_s: float
    nodes: NodeTable
    speed: SpeedModel
    table: JobTable
    waiting: Waiting
    running: dict[str, Allocation]
    free: Free
    up_gpus: int  # GPUs of all nodes that are not down
    sensitivity: Sensitivity
    met: float = 0.0  # integral of the number of active jobs over time
    seed: int = 0
    restart_s: float | None = None  # of every job; None: what its profile says
    start_s: float = 0.0  # of every job's first start
    round_s: float | None = None  # decisions are taken at multiples of this; None: whenever something changes
    observed: Observed = field(default_factory=Observed)
    notes: dict[str, Floats] = field(
        default_factory=dict
    )  # where a stage left off: a start for its next decision
    still: bool = False  # nobody got or lost anything since the last decision
    unchanged: Plan = field(init=False)  # the plan that leaves everything as it is

    def __post_init__(self) -> None:
        self.unchanged = Plan(self.running)

    def fork(self) -> Snapshot:
        """Return a copy that can be changed without touching the original."""
        return replace(
            self,
            table=self.table.fork(),
            waiting=self.waiting.fork(),
            running=self.running.copy(),
            free=self.free.copy(),
            observed=self.observed.copy(),
            notes=self.notes.copy(),
        )

    def remaining_samples(self) -> Floats:
        """Samples left of every active job, now."""
        active = self.table.data[:, : len(self.table.jobs)]
        ran: Floats = self.now_s - active[C.SINCE]
        np.maximum(ran, 0.0, out=ran)
        ran *= active[C.RATE]
        left: Floats = np.subtract(active[C.REMAINING], ran, out=ran)
        return np.maximum(left, 0.0, out=left)

    def remaining_s(self) -> Floats:
        """Predicted seconds left of every active job if it ran with what it asked for."""
        left: Floats = self.remaining_samples() / self.table.column(C.REFERENCE_RATE)
        return left

    def remaining_s_of(self, row: int) -> float:
        """Predicted seconds left of one job if it ran with what it asked for."""
        cells = self.table.cells
        ran = max(self.now_s - cells[C.SINCE][row], 0.0)
        left = cells[C.REMAINING][row] - cells[C.RATE][row] * ran
        return max(left, 0.0) / cells[C.REFERENCE_RATE][row]

    def restart_cost(self, job: Job) -> float:
        """Seconds without progress when a job resumes or its workers change."""
        if self.restart_s is not None:
            return self.restart_s
        return job.profile.restart_s if job.profile is not None else 0.0

    def seen(self, row: int) -> Ran:
        """Return the sizes a job has run at, the present one included."""
        cells, job_id = self.table.cells, self.table.jobs[row].job_id
        ran, rate = self.now_s - cells[C.SINCE][row], cells[C.RATE][row]
        if ran <= 0 or rate <= 0:
            return self.observed.seen(job_id, None)
        held = self.running[job_id]
        return self.observed.seen(job_id, ((held.gpus, held.servers), ran, rate * ran))

    def attained_gpu_s(self) -> Floats:
        """GPU-seconds every active job has held so far."""
        active = self.table.data[:, : len(self.table.jobs)]
        got: Floats = self.now_s - active[C.HELD_SINCE]
        got *= active[C.HELD]
        got += active[C.ATTAINED]
        return got

    def executed_s(self) -> Floats:
        """Seconds every active job has held GPUs so far."""
        t = self.table
        got: Floats = t.column(C.EXECUTED) + (t.column(C.HELD) > 0) * (self.now_s - t.column(C.HELD_SINCE))
        return got

    def contention(self) -> Floats:
        """Average number of active jobs, itself included, over the life of every active job."""
        lived = self.now_s - self.table.column(C.ARRIVAL)
        met = self.met - self.table.column(C.MET)
        count = float(len(self.table))
        mean: Floats = np.where(lived > 0, met / np.where(lived > 0, lived, 1.0), count)
        return mean

    def waiting_rows(self) -> Ints:
        """Rows of all waiting jobs, in order of submission."""
        row_of = self.table.row_of
        return np.fromiter((row_of[job_id] for job_id in self.waiting), np.int64, len(self.waiting))
