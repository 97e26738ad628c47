"""One active job: what a new record says, what is left at any time, and that a copy is independent."""

from __future__ import annotations

import pytest

from trainyard.model.job import Job
from trainyard.state.lifecycle import State
from trainyard.state.record import ATTRIBUTES, Record
from trainyard.state.seen import Seen

JOB = Job("a", 0.0, 2, 100.0)


def record():
    return Record(JOB, 7, 1, (200.0, 2.0, 90.0), 5.0, 12.0)


def test_a_new_record_has_everything_before_it():
    made = record()
    assert {name: getattr(made, name) for name in ATTRIBUTES} == {
        "arrival_s": 5.0,
        "attained": 0.0,
        "executed": 0.0,
        "first_start_s": None,
        "given": 0,
        "given_since": 5.0,
        "gpus": 2,
        "ideal_s": 90.0,
        "job": JOB,
        "job_id": "a",
        "met": 12.0,
        "occupies": None,
        "preemptions": 0,
        "rate": 0.0,
        "reference_rate": 2.0,
        "remaining": 200.0,
        "restarts": 0,
        "row": -1,
        "run_since_s": 0.0,
        "saved": 200.0,
        "seen": None,
        "seq": 7,
        "since": 5.0,
        "special": False,
        "start": -1,
        "state": State.WAITING,
        "total": 200.0,
        "trained_with": 0,
        "trouble": None,
        "length": None,
        "pace": 1.0,
        "reported_s": -1.0,
        "type_index": 1,
    }


@pytest.mark.parametrize(
    ("now_s", "left"), [(5.0, 200.0), (9.0, 200.0), (10.0, 200.0), (30.0, 100.0), (50.0, 0.0), (51.0, 0.0)]
)
def test_work_is_left_as_the_rate_says_and_never_less_than_none(now_s, left):
    runs = record()
    runs.rate, runs.since = 5.0, 10.0  # it starts at 10 s
    assert runs.remaining_at(now_s) == left
    assert runs.remaining_s(now_s) == left / 2.0


def test_what_it_holds_is_counted_from_when_it_was_given():
    runs = record()
    assert (runs.attained_gpu_s(30.0), runs.executed_s(30.0)) == (0.0, 0.0)
    runs.attained, runs.executed, runs.given_since = 8.0, 4.0, 10.0
    assert (runs.attained_gpu_s(30.0), runs.executed_s(30.0)) == (8.0, 4.0)
    runs.given = 3
    assert (runs.attained_gpu_s(30.0), runs.executed_s(30.0)) == (8.0, 4.0)  # planned, not yet started
    runs.rate = 1.0
    assert (runs.attained_gpu_s(30.0), runs.executed_s(30.0)) == (8.0 + 3 * 20.0, 4.0 + 20.0)


def test_a_copy_is_the_same_and_independent():
    first = record()
    first.row, first.remaining, first.restarts, first.start = 3, 50.0, 2, 9
    first.see().ran_at((2, 0), 10.0, 20.0)
    twin = first.copy()
    assert {name: getattr(twin, name) for name in ATTRIBUTES} == {
        name: getattr(first, name) for name in ATTRIBUTES
    }
    twin.remaining = 1.0
    twin.see().ran_at((4, 0), 1.0, 5.0)
    assert first.remaining == 50.0
    assert first.seen.ran == {(2, 0): (10.0, 20.0)}
    assert record().copy().seen is None


def test_what_was_seen_is_noted_in_one_place():
    runs = record()
    assert runs.see() == Seen()
    assert runs.see() is runs.see() is runs.seen
