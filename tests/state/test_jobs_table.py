"""The job table against a plain dictionary of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conftest import APART
from trainyard.model.job import Job
from trainyard.state.jobs import Column, JobTable, Row

C = Column


def row_of_numbers(seq):
    """A row in which every column has a value of its own."""
    return tuple(1000.0 * seq + column for column in range(C.COUNT))


def filled(count):
    table = JobTable()
    for seq in range(count):
        table.add(Job(f"j{seq}", 0.0, seq + 1, 1.0), row_of_numbers(seq))
    return table


class Rows(RuleBasedStateMachine):
    """Adds and removes rows at random, in a table and in a dictionary."""

    def __init__(self):
        super().__init__()
        self.table, self.model, self.seq = JobTable(), {}, 0

    @rule(gpus=st.integers(1, 9), cpus=st.sampled_from([None, 2.0]), many=st.sampled_from([1, 1, 1, 33]))
    def add(self, gpus, cpus, many):
        for _ in range(many):
            self.seq += 1
            job = Job(f"j{self.seq}", 0.0, gpus, 1.0, cpus=cpus)
            self.table.add(job, row_of_numbers(self.seq))
            self.model[job.job_id] = (job, row_of_numbers(self.seq))

    @rule(data=st.data())
    def remove(self, data):
        if self.model:
            job_id = data.draw(st.sampled_from(sorted(self.model)))
            self.table.remove(job_id)
            del self.model[job_id]

    @rule()
    def go_on_with_a_fork(self):
        old, self.table = self.table, self.table.fork()
        for job_id in list(old.row_of)[::2]:
            old.remove(job_id)
        old.data[:] = -1.0

    @invariant()
    def same_rows(self):
        table = self.table
        assert len(table) == len(self.model)
        assert set(table.row_of) == set(self.model)
        for job_id, (job, values) in self.model.items():
            row = table.row_of[job_id]
            assert table.jobs[row] is job
            assert tuple(table.data[:, row]) == values
            assert [cells[row] for cells in table.cells] == list(values)
        assert table.gpus == sum(job.gpus for job, _ in self.model.values())
        assert table.particular == sum(job.cpus is not None for job, _ in self.model.values())


TestRows = Rows.TestCase
TestRows.settings = settings(max_examples=15, stateful_step_count=25)


def test_columns_are_numbered_without_gaps():
    numbers = [value for name, value in vars(C).items() if name.isupper() and name != "COUNT"]
    assert sorted(numbers) == list(range(C.COUNT))


def test_the_last_row_takes_the_place_of_one_that_goes():
    table = filled(4)
    table.remove("j1")
    assert [job.job_id for job in table.jobs] == ["j0", "j3", "j2"]
    assert table.row_of == {"j0": 0, "j3": 1, "j2": 2}
    assert table.column(C.GPUS).tolist() == [2.0, 3002.0, 2002.0]
    table.remove("j2")
    assert table.row_of == {"j0": 0, "j3": 1}


def test_a_table_grows_past_its_first_size():
    table = filled(64)
    before = table.data
    assert before.shape == (C.COUNT, 64)
    table.add(Job("more", 0.0, 1, 1.0), row_of_numbers(64))
    assert table.data.shape == (C.COUNT, 128)
    assert table.column(C.RATE).tolist() == [1000.0 * seq + C.RATE for seq in range(65)]
    table.cells[C.RATE][64] = 7.0  # cells are views of the grown array, not of the old one
    assert table.data[C.RATE, 64] == 7.0


def test_a_column_is_a_view_of_the_rows_there_are():
    table = filled(2)
    table.column(C.RATE)[:] = 5.0
    assert table.data[C.RATE, :3].tolist() == [5.0, 5.0, 0.0]


def test_a_fork_of_many_rows_has_all_of_them():
    table = filled(70)
    twin = table.fork()
    assert twin.data.shape == (C.COUNT, 70)
    twin.add(Job("more", 0.0, 1, 1.0), row_of_numbers(70))
    assert (len(twin), len(table)) == (71, 70)
    assert np.array_equal(twin.data[:, :70], table.data[:, :70])


def test_jobs_with_demands_of_their_own_are_counted():
    table = JobTable()
    for job_id, profile, memory_gb in (("plain", None, None), ("apart", APART, None), ("own", None, 9.0)):
        table.add(Job(job_id, 0.0, 1, 1.0, profile=profile, memory_gb=memory_gb), row_of_numbers(0))
    assert table.particular == 2
    table.remove("apart")
    assert (table.particular, table.fork().particular) == (1, 1)


def test_a_row_names_the_columns_in_their_order():
    columns = {name.lower(): number for name, number in vars(Column).items() if name.isupper()}
    assert columns.pop("count") == len(Row._fields)
    assert [columns[name] for name in Row._fields] == list(range(len(Row._fields)))
