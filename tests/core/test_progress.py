"""Work done, checkpoints and what a failure takes, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import SERVED
from trainyard.core.progress import lr_factor, note_checkpoint, roll_back, settle
from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

HELD = Allocation((Share("n0", 2, 1, 6.0, 32.0),))


def running(remaining=1000.0, rate=2.0, since=10.0, *, began=10.0, saved=1000.0, **fields):
    """A job that runs at a rate since some time."""
    record = Record(Job("a", 0.0, 2, 500.0, **fields), 1, -1, (1000.0, 2.0, 500.0), 0.0, 0.0)
    record.state, record.occupies = State.RUNNING, HELD
    record.remaining, record.rate, record.since = remaining, rate, since
    record.run_since_s, record.saved = began, saved
    return record


def numbers(record):
    return [record.remaining, record.rate, record.since]


@pytest.mark.parametrize(
    ("now", "left", "since"),
    [
        (10.0, 1000.0, 10.0),
        (5.0, 1000.0, 10.0),  # it does not progress yet
        (11.0, 998.0, 11.0),
        (510.0, 0.0, 510.0),
        (999.0, 0.0, 999.0),  # never below nothing
    ],
)
def test_settling_counts_the_work_since_the_last_time(now, left, since):
    record = running()
    assert settle(record, now) == left
    assert numbers(record) == [left, 2.0, since]


def test_settling_twice_counts_once():
    record = running()
    settle(record, 20.0)
    assert settle(record, 20.0) == 980.0


@pytest.mark.parametrize(
    ("limits", "occupies", "seen"),
    [
        ({"min_gpus": 1, "max_gpus": 4}, HELD, {(2, 1): (5.0, 10.0)}),
        ({"min_gpus": 1, "max_gpus": 4}, None, {}),
        ({}, HELD, {}),  # nothing is to be learnt of a job that has one size
    ],
)
def test_speeds_of_elastic_jobs_are_remembered(limits, occupies, seen):
    record = running(**limits)
    record.occupies = occupies
    settle(record, 15.0)
    settle(record, 15.0)
    assert record.see().ran == seen


@pytest.mark.parametrize(
    ("now", "saved"),
    [
        (9.0, 1000.0),
        (10.0, 1000.0),
        (39.9, 1000.0),  # the first checkpoint comes 30 s after the start
        (40.0, 1000.0 - 60),
        (69.9, 1000.0 - 60),
        (70.0, 1000.0 - 120),
    ],
)
def test_checkpoints_come_at_multiples_after_the_start(now, saved):
    record = running(checkpoint_s=30.0)
    note_checkpoint(record, now)
    assert record.saved == saved
    assert numbers(record) == [1000.0, 2.0, 10.0]  # nothing else changes


def test_a_job_that_saves_all_the_time_loses_nothing():
    record = running(checkpoint_s=0.0)
    note_checkpoint(record, 33.0)
    assert record.saved == 1000.0 - 2 * 23


def test_a_checkpoint_before_the_rate_changed_was_noted_then():
    record = running(since=50.0, began=10.0, saved=940.0, checkpoint_s=30.0)
    note_checkpoint(record, 69.0)  # the last one was at 40 s, before the present rate
    assert record.saved == 940.0
    note_checkpoint(record, 71.0)
    assert record.saved == 1000.0 - 2 * 20


def test_a_checkpoint_at_the_change_of_rate_counts_as_after_it():
    record = running(remaining=900.0, since=40.0, saved=1000.0, checkpoint_s=30.0)
    note_checkpoint(record, 41.0)
    assert record.saved == 900.0


def test_a_checkpoint_never_says_less_than_nothing():
    record = running(remaining=10.0, checkpoint_s=30.0)
    note_checkpoint(record, 40.0)
    assert record.saved == 0.0


def test_a_failure_takes_the_work_since_the_last_checkpoint():
    record = running(checkpoint_s=30.0)
    roll_back(record, 75.0)
    assert numbers(record) == [880.0, 0.0, 75.0]


def test_a_job_that_was_stopping_has_saved_its_work():
    record = running(remaining=777.0, saved=880.0, checkpoint_s=30.0)
    record.state = State.STOPPING
    roll_back(record, 75.0)
    assert numbers(record) == [777.0, 0.0, 75.0]


@pytest.mark.parametrize(
    ("profile", "factor"), [(None, 1.5), (replace(SERVED, scaling="weak"), 1.5), (SERVED, 1.0)]
)
def test_the_learning_rate_grows_with_the_batch(profile, factor):
    record = running(profile=profile)
    record.trained_with = 4
    assert lr_factor(record, 6) == factor
