"""The queue of waiting jobs against a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.job import Job
from trainyard.state.queue import Queue
from trainyard.state.record import Record


def record(seq):
    return Record(Job(f"j{seq}", 0.0, 1, 1.0), seq, -1, (1.0, 1.0, 1.0), 0.0, 0.0)


def queue_of(records):
    waiting = Queue()
    for one in records:
        waiting.add(one)
    return waiting


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60))
def test_a_queue_is_sorted_whatever_comes_and_goes(steps):
    waiting, model = Queue(), []
    records = [record(number) for number in range(13)]
    for first_of_all, number in steps:
        if first_of_all and model:
            number = model[0]
        if number in model:
            waiting.remove(records[number])
            model.remove(number)
        else:
            waiting.add(records[number])
            model = sorted([*model, number])
        assert list(waiting) == [records[number] for number in model]
        assert len(waiting) == len(model)
        if model:
            assert waiting.head() is records[model[0]]


def test_a_job_that_comes_back_takes_its_old_place():
    one, two, three, four = records = [record(number) for number in (1, 2, 3, 4)]
    waiting = queue_of(records)
    waiting.remove(one)
    waiting.remove(two)
    waiting.add(two)
    assert list(waiting) == [two, three, four]
    waiting.add(one)
    assert list(waiting) == records


def test_a_queue_forgets_those_that_left_from_the_front():
    records = [record(number) for number in range(1000)]
    waiting = queue_of(records)
    for one in records:
        assert next(iter(waiting)) is one
        waiting.remove(one)
        assert len(waiting._entries) <= 2 * len(waiting) + 1
    assert list(waiting) == []
