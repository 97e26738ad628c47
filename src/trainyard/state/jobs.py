"""The job table: active jobs, one record each, and the same numbers as columns for code on arrays."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.job import Job
from trainyard.state.journal import Journal
from trainyard.state.record import Record


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


class JobTable:
    """Active jobs, one row each, rows dense and in no particular order.

    Records are the truth. Columns are brought up to date when they are asked for, from what changed since.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []  # by row
        self.of: dict[str, Record] = {}
        self.gpus = 0  # requested by all rows together
        self.particular = 0  # rows that ask for CPUs or memory of their own choice
        self.bound = 0  # rows of jobs that have to be admitted; 1 more if tenants have limits or guarantees
        self.resized = 0  # rows that have other GPUs than requested
        self.changed = Journal()
        self._entries = self.changed.entries
        self._data: Floats = np.zeros((Column.COUNT, 64))
        self._read = 0  # version of the columns
        self._jobs: list[Job] | None = None  # by row; None: to be made anew

    def __len__(self) -> int:
        return len(self.records)

    @property
    def data(self) -> Floats:
        """All columns, as views up to the number of rows or longer."""
        changed = self.changed
        if self._read != changed.base + len(changed.entries):
            self._refresh()
        return self._data

    @property
    def jobs(self) -> list[Job]:
        """The jobs of all rows; the list is not to be written to."""
        if self._jobs is None:
            self._jobs = [record.job for record in self.records]
        return self._jobs

    def column(self, column: int) -> Floats:
        """Return one column over all rows; it is not to be written to."""
        view: Floats = self.data[column, : len(self.records)]
        return view

    def add(self, record: Record) -> None:
        """Append a row."""
        record.row = len(self.records)
        self.records.append(record)
        self._jobs = None
        self.of[record.job_id] = record
        self.gpus += record.gpus
        if record.job.particular:
            self.particular += 1
        if record.job.bound:
            self.bound += 1
        self._entries.append(record)

    def remove(self, record: Record) -> None:
        """Drop a row; the last row takes its place."""
        del self.of[record.job_id]
        self.gpus -= record.gpus
        if record.job.particular:
            self.particular -= 1
        if record.job.bound:
            self.bound -= 1
        self._jobs, last, entries = None, self.records.pop(), self._entries
        entries.append(record)
        if last is not record:
            row = last.row = record.row
            self.records[row] = last
            entries.append(last)
        record.row = -1

    def replace(self, record: Record, job: Job) -> None:
        """The job of a row was changed; its work and what it asks for are as before."""
        self.bound += job.bound - record.job.bound
        record.job, self._jobs = job, None
        self._entries.append(record)

    def fork(self) -> JobTable:
        """Return an independent copy."""
        twin = JobTable()
        twin.records = [record.copy() for record in self.records]
        twin.of = {record.job_id: record for record in twin.records}
        twin.gpus = self.gpus
        twin.particular = self.particular
        twin.bound = self.bound
        twin.resized = self.resized
        twin.go_on_at(self.changed.version)
        return twin

    def go_on_at(self, version: int) -> None:
        """Count changes from this number on; columns are made anew."""
        self.changed.entries.clear()
        self.changed.base, self._read = version, -1

    def _refresh(self) -> None:
        changed = self.changed.since(self._read)
        records = self.records if changed is None else [r for r in dict.fromkeys(changed) if r.row >= 0]
        if len(self.records) > self._data.shape[1]:
            wider = np.zeros((Column.COUNT, 2 * len(self.records)))
            wider[:, : self._data.shape[1]] = self._data
            self._data = wider
        data = self._data
        for record in records:
            data[:, record.row] = _values(record)
        self._read = self.changed.version


def _values(r: Record) -> tuple[float, ...]:
    """The numbers of a record by column."""
    job = r.job
    return (
        r.seq,
        r.arrival_s,
        r.gpus,
        job.least_gpus,
        job.most_gpus,
        job.weight,
        r.type_index,
        r.total,
        r.reference_rate,
        r.remaining,
        r.rate,
        r.since,
        r.given,
        r.given_since,
        r.attained,
        r.executed,
        r.met,
        r.restarts,
    )
