"""The job table: active jobs as rows of arrays."""

from __future__ import annotations

from typing import Final, NamedTuple, cast

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.job import Job


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
    GIVEN: Final = 12  # GPUs given from GIVEN_SINCE on
    GIVEN_SINCE: Final = 13
    ATTAINED: Final = 14  # GPU-seconds up to GIVEN_SINCE
    EXECUTED: Final = 15  # seconds with GPUs up to GIVEN_SINCE
    MET: Final = 16  # integral of the number of active jobs over time, at arrival
    RESTARTS: Final = 17

    COUNT: Final = 18


class Row(NamedTuple):
    """The values of one job by column name; a field for each column, in the same order."""

    seq: float
    arrival: float
    gpus: float
    least: float
    most: float
    weight: float
    type: float
    total: float
    reference_rate: float
    remaining: float
    rate: float = 0.0
    since: float = 0.0
    given: float = 0.0
    given_since: float = 0.0
    attained: float = 0.0
    executed: float = 0.0
    met: float = 0.0
    restarts: float = 0.0


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

    def add(self, job: Job, values: Row) -> None:
        """Append a row."""
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
