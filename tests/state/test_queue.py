"""The queue of waiting jobs against a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainyard.state.queue import Queue


def queue_of(*numbers):
    waiting = Queue()
    for number in numbers:
        waiting.add(number, f"j{number}")
    return waiting


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60))
def test_a_queue_is_sorted_whatever_comes_and_goes(steps):
    waiting, model = Queue(), []
    for first_of_all, number in steps:
        if first_of_all and model:
            number = model[0]
        if number in model:
            waiting.remove(number, f"j{number}")
            model.remove(number)
        else:
            waiting.add(number, f"j{number}")
            model = sorted([*model, number])
        assert list(waiting) == [f"j{number}" for number in model]
        assert len(waiting) == len(model)
        assert list(waiting.fork()) == list(waiting)


def test_a_job_that_comes_back_takes_its_old_place():
    waiting = queue_of(1, 2, 3, 4)
    waiting.remove(1, "j1")
    waiting.remove(2, "j2")
    waiting.add(2, "j2")
    assert list(waiting) == ["j2", "j3", "j4"]
    waiting.add(1, "j1")
    assert list(waiting) == ["j1", "j2", "j3", "j4"]


def test_a_queue_forgets_those_that_left_from_the_front():
    waiting = queue_of(*range(1000))
    for number in range(1000):
        assert next(iter(waiting)) == f"j{number}"
        waiting.remove(number, f"j{number}")
        assert len(waiting._entries) <= 2 * len(waiting) + 1
    assert list(waiting) == []


def test_a_reader_is_told_who_came_and_went():
    waiting = queue_of(1, 2)
    waiting.journal = []
    waiting.add(3, "j3")
    waiting.remove(2, "j2")
    waiting.remove(1, "j1")
    assert waiting.journal == ["j3", "j2", "j1"]


def test_a_fork_has_the_jobs_and_no_notes():
    waiting = queue_of(1, 2, 3)
    waiting.journal, waiting.blocked, waiting.lines = [], "j1", object()
    waiting.remove(1, "j1")
    twin = waiting.fork()
    assert (twin.journal, twin.blocked, twin.lines) == (None, None, None)
    twin.remove(2, "j2")
    twin.add(9, "j9")
    assert (list(twin), list(waiting)) == (["j3", "j9"], ["j2", "j3"])
    assert waiting.journal == ["j1"]
