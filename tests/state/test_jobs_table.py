"""The job table against a plain dictionary of records, and its columns against the records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conftest import APART
from trainyard.model.job import Job
from trainyard.state import journal
from trainyard.state.jobs import Column, JobTable
from trainyard.state.record import ATTRIBUTES, Record

C = Column

# Where the columns come from: a record, or the job that it is of.
OF_RECORD = {
    "SEQ": "seq",
    "ARRIVAL": "arrival_s",
    "GPUS": "gpus",
    "TYPE": "type_index",
    "TOTAL": "total",
    "REFERENCE_RATE": "reference_rate",
    "REMAINING": "remaining",
    "RATE": "rate",
    "SINCE": "since",
    "GIVEN": "given",
    "GIVEN_SINCE": "given_since",
    "ATTAINED": "attained",
    "EXECUTED": "executed",
    "MET": "met",
    "RESTARTS": "restarts",
}
COUNTS = ("type_index", "given", "restarts")
OF_JOB = {"LEAST": "least_gpus", "MOST": "most_gpus", "WEIGHT": "weight"}
CHANGING = ("remaining", "rate", "since", "given", "given_since", "attained", "executed", "restarts")


def column_names():
    return {name: number for name, number in vars(C).items() if name.isupper() and name != "COUNT"}


def record_of_numbers(seq, gpus=None, **fields):
    """A record in which every number has a value of its own."""
    gpus = seq + 1 if gpus is None else gpus
    job = Job(f"j{seq}", 0.0, gpus, 1.0, weight=1000.0 * seq + C.WEIGHT, **fields)
    record = Record(job, seq, -1, (1.0, 1.0, 1.0), 0.0, 0.0)
    for name, attribute in OF_RECORD.items():
        if attribute not in ("seq", "gpus"):
            number = 1000 * seq + getattr(C, name)
            setattr(record, attribute, number if attribute in COUNTS else float(number))
    return record


def values(record):
    """What the columns should say of a record."""
    told = [0.0] * C.COUNT
    for names, source in ((OF_RECORD, record), (OF_JOB, record.job)):
        for name, attribute in names.items():
            told[getattr(C, name)] = float(getattr(source, attribute))
    return told


def filled(count):
    table = JobTable()
    for seq in range(count):
        table.add(record_of_numbers(seq))
    return table


class Rows(RuleBasedStateMachine):
    """Adds, changes and removes rows at random, in a table and in a dictionary."""

    def __init__(self):
        super().__init__()
        self.table, self.model, self.seq = JobTable(), {}, 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(journal, "KEPT", 8)

    def teardown(self):
        self.patch.undo()

    @rule(gpus=st.integers(1, 9), cpus=st.sampled_from([None, 2.0]), many=st.sampled_from([1, 1, 1, 33]))
    def add(self, gpus, cpus, many):
        for _ in range(many):
            self.seq += 1
            record = record_of_numbers(self.seq, gpus, cpus=cpus)
            self.table.add(record)
            self.model[record.job_id] = record

    @rule(data=st.data())
    def remove(self, data):
        if self.model:
            job_id = data.draw(st.sampled_from(sorted(self.model)))
            record = self.model.pop(job_id)
            self.table.remove(record)
            assert record.row < 0

    @rule(data=st.data(), name=st.sampled_from(CHANGING), number=st.integers(0, 9))
    def change(self, data, name, number):
        if self.model:
            record = self.model[data.draw(st.sampled_from(sorted(self.model)))]
            setattr(record, name, number)
            self.table.changed.entries.append(record)

    @rule()
    def forget_what_changed(self):
        self.table.changed.trim()

    @rule()
    def go_on_with_a_fork(self):
        old, self.table = self.table, self.table.fork()
        self.model = dict(self.table.of)
        for record in old.records[::2]:
            old.remove(record)
        for record in old.records:
            record.rate = -1.0
        old.data[:] = -1.0

    @rule()  # columns that nobody asked for in between catch up with all of it
    def look(self):
        table = self.table
        for record in self.model.values():
            assert table.data[:, record.row].tolist() == values(record)

    @invariant()
    def same_rows(self):
        table, model = self.table, self.model
        assert len(table) == len(model)
        assert table.of == model
        for record in model.values():
            assert table.records[record.row] is record
            assert table.jobs[record.row] is record.job
        assert table.gpus == sum(record.gpus for record in model.values())
        assert table.particular == sum(record.job.cpus is not None for record in model.values())


TestRows = Rows.TestCase
TestRows.settings = settings(max_examples=15, stateful_step_count=25)


def test_columns_are_numbered_without_gaps():
    assert sorted(column_names().values()) == list(range(C.COUNT))


def test_every_column_is_a_number_of_the_record_or_of_its_job():
    assert sorted([*OF_RECORD, *OF_JOB]) == sorted(column_names())
    record = record_of_numbers(3, min_gpus=2, max_gpus=9)
    assert len(set(values(record))) == C.COUNT  # all different, so that none can stand for another
    table = JobTable()
    table.add(record)
    assert table.data[:, 0].tolist() == values(record)


def test_the_last_row_takes_the_place_of_one_that_goes():
    table = filled(4)
    table.remove(table.of["j1"])
    assert [job.job_id for job in table.jobs] == ["j0", "j3", "j2"]
    assert {job_id: record.row for job_id, record in table.of.items()} == {"j0": 0, "j3": 1, "j2": 2}
    assert table.column(C.GPUS).tolist() == [1.0, 4.0, 3.0]
    table.remove(table.of["j2"])
    assert {job_id: record.row for job_id, record in table.of.items()} == {"j0": 0, "j3": 1}
    assert table.column(C.GPUS).tolist() == [1.0, 4.0]


def test_a_table_grows_past_its_first_size():
    table = filled(64)
    assert table.data.shape == (C.COUNT, 64)
    table.add(record_of_numbers(64))
    assert table.data.shape[1] > 64
    assert table.column(C.RATE).tolist() == [1000.0 * seq + C.RATE for seq in range(65)]


def test_records_are_the_truth():
    table = filled(2)
    table.column(C.RATE)[:] = 5.0
    table.changed.entries += table.records
    assert table.column(C.RATE).tolist() == [float(C.RATE), 1000.0 + C.RATE]
    table.records[1].rate = 7.0
    table.changed.entries.append(table.records[1])
    assert table.column(C.RATE).tolist() == [float(C.RATE), 7.0]


def test_a_fork_of_many_rows_has_all_of_them():
    table = filled(70)
    twin = table.fork()
    twin.add(record_of_numbers(70))
    assert (len(twin), len(table)) == (71, 70)
    assert np.array_equal(twin.data[:, :70], table.data[:, :70])


def test_a_fork_counts_on_from_the_same_sums():
    table = filled(3)
    table.resized = 2
    twin = table.fork()
    assert (twin.gpus, twin.particular, twin.resized) == (1 + 2 + 3, 0, 2)


def test_jobs_with_demands_of_their_own_are_counted():
    table = JobTable()
    for seq, (profile, memory_gb) in enumerate([(None, None), (APART, None), (None, 9.0)]):
        table.add(record_of_numbers(seq, 1, profile=profile, memory_gb=memory_gb))
    assert table.particular == 2
    table.remove(table.of["j1"])
    assert (table.particular, table.fork().particular) == (1, 1)


def test_a_copy_of_a_record_has_all_its_numbers_and_is_its_own():
    record = record_of_numbers(5)
    record.preemptions, record.first_start_s, record.special = 4, 2.0, True
    record.see().ran_at((1, 0), 2.0, 3.0)
    twin = record.copy()
    assert all(getattr(twin, name) == getattr(record, name) for name in ATTRIBUTES)
    twin.rate, twin.row = 1.5, 9
    twin.see().ran_at((1, 0), 2.0, 3.0)
    assert record.see().ran == {(1, 0): (2.0, 3.0)}
    assert (record.rate, record.row) == (5000.0 + C.RATE, -1)


@pytest.mark.interpreted
def test_columns_are_read_again_only_after_a_change(monkeypatch):
    table, refresh, times = JobTable(), JobTable._refresh, []
    monkeypatch.setattr(JobTable, "_refresh", lambda self: (times.append(1), refresh(self)))
    for seq in range(3):
        table.add(record_of_numbers(seq))
    for _ in range(2):
        assert table.column(C.SEQ).tolist() == [0.0, 1.0, 2.0]
    assert len(times) == 1
