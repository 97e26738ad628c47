"""Events as records of a log: what is written is read again to the last bit."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import complaint
from profile_cases import PROFILES
from trainyard.core.events import (
    CheckpointWritten,
    DecisionDue,
    DecisionsPaused,
    DecisionsResumed,
    Event,
    GpuFailed,
    GpuRepaired,
    JobCancelled,
    JobChanged,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    PolicyChanged,
    ProgressReported,
    ReservationDropped,
    ReservationMade,
    RulesChanged,
)
from trainyard.core.wire import VERSION, from_record, job_from_record, job_to_record, to_record
from trainyard.model.cluster import Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.model.terms import Terms
from trainyard.model.zoo import ZOO
from trainyard.state.lifecycle import State

T = 0.1 + 0.2
ODD = 'j"17_0\n\t\\ é 火 \u2028 inf'
TERMS = Terms(3, (9, 75), 5.5, inf, {ODD: "any", "b": "failed"}, hold=True)
WHOLE = Job(
    ODD,
    T,
    4,
    samples=1e300,
    model="m",
    profile=PROFILES[-1],
    min_gpus=2,
    max_gpus=8,
    tenant="tenänt",
    weight=1 / 3,
    deadline_s=inf,
    gpu_type="V100",
    cpus=2.5,
    memory_gb=5e-324,
    status="Pass",
    checkpoint_s=inf,
    user="ann",
    priority=-2,
    sizes=(2, 4, 8),
    preemptible=False,
    terms=TERMS,
)
EVENTS = [
    JobSubmitted(T, WHOLE),
    JobSubmitted(0.0, Job("inf", 0.0, 1)),
    JobSubmitted(0.0, Job("nan", 0.0, 1, 5.0, tenant="-inf", terms=Terms())),
    JobStarted(T, ODD, 3, {"n0": (0, 3), "ñ": ()}),
    JobFinished(T, ODD, State.FAILED, 2),
    JobFailed(T, ODD, "exit", "last line: é\n", -9, 2, gone=False),
    JobFailed(T, ODD, "exit"),
    JobStopped(T, ODD, 2, saved=False),
    JobStopped(T, ODD, 2, code="saved", text=ODD, exit_code=75),
    JobFailed(T, ODD, "crash", exit_signal=11),
    JobGone(T, ODD, 2, "n0"),
    JobCancelled(T, ODD, True, "by ann"),
    JobHeld(T, "inf"),
    JobReleased(T, "nan"),
    JobChanged(T, ODD, {"time_limit_s": inf, "deadline_s": None, "priority": 3}),
    JobChanged(T, ODD, {"time_limit_s": -inf}),
    JobRetried(T, ODD),
    ProgressReported(T, ODD, 1e300, inf, -inf, 5e-324, 2),
    ProgressReported(T, ODD, inf),
    CheckpointWritten(T, ODD, T, 2),
    NodeJoined(T, Node("inf", "V100", 4, 1.5, inf, 10.0, 1 / 3, inf)),
    NodeLeft(T, "inf"),
    NodeDrained(T, ODD),
    NodeUndrained(T, ODD),
    NodeFailed(T, ODD),
    NodeFenced(T, ODD),
    NodeRepaired(T, ODD),
    GpuFailed(T, ODD, 3),
    GpuRepaired(T, ODD, 3),
    ReservationMade(T, Reservation("r", T, inf, ("n0", ODD), "t")),
    ReservationMade(T, Reservation("inf", -inf, 5.0, gpus=8, gpu_type="V100")),
    ReservationDropped(T, "inf"),
    PolicyChanged(T, "las(queues=2)+tune"),
    RulesChanged(T, {"round_s": None, "back_off_s": T, "most_idle": 7}),
    DecisionsPaused(T, stop=True),
    DecisionsResumed(T),
    DecisionDue(-inf),
    DecisionDue(1e300),
]


def through_a_file(record):
    return json.loads(json.dumps(record, allow_nan=False))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_written_is_read_again(event):
    record = to_record(event)
    assert (record["v"], record["event"]) == (VERSION, type(event).__name__)
    back = from_record(through_a_file(record))
    assert back == event
    assert type(back) is type(event)
    for field in fields(event):
        assert type(getattr(back, field.name)) is type(getattr(event, field.name))


def test_every_type_of_event_is_tried():
    assert {type(event) for event in EVENTS} == set(Event.__args__)


def test_what_is_no_number_stays_none():
    back = from_record(through_a_file(to_record(ProgressReported(nan, "a", nan, loss=nan))))
    assert isnan(back.time_s)
    assert isnan(back.samples_done)
    assert isnan(back.loss)
    assert isnan(
        from_record(through_a_file(to_record(JobChanged(0.0, "a", {"priority": nan})))).changes["priority"]
    )


@pytest.mark.parametrize("profile", [*PROFILES, *(model.profile for model in ZOO.values())])
def test_profiles_and_all_that_follows_from_them_are_read_again(profile):
    job = Job("a", 0.0, 2, samples=9.0, profile=profile)
    back = job_from_record(through_a_file(job_to_record(job)))
    assert (back, back.profile, back.particular) == (job, job.profile, job.particular)
    assert profile is None or back.profile.name == profile.name


def test_what_has_its_usual_value_is_left_out():
    assert job_to_record(Job("a", 0.0, 2, 5.0)) == {
        "job_id": "a",
        "arrival_s": 0.0,
        "gpus": 2,
        "duration_s": 5.0,
    }
    assert job_to_record(Job("a", 0.0, 2, terms=Terms(retries=2)))["terms"] == {"retries": 2}
    assert job_to_record(Job("a", 0.0, 2, terms=Terms()))["terms"] == {}


numbers = st.floats(allow_nan=False)


@given(st.text(), numbers, numbers, st.none() | numbers, st.none() | numbers)
def test_any_numbers_and_names(name, time_s, done, speed, loss):
    event = ProgressReported(time_s, name, done, speed, loss)
    assert from_record(through_a_file(to_record(event))) == event


@given(
    st.integers(0, 9), numbers, numbers, st.dictionaries(st.text(), st.sampled_from(["ok", "failed", "any"]))
)
def test_any_terms(retries, limit_s, wait_s, after):
    job = replace(WHOLE, terms=Terms(retries, (), limit_s, wait_s, after))
    assert job_from_record(through_a_file(job_to_record(job))) == job


GOOD = to_record(JobFinished(1.0, "a"))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, "event None of version None is not known; this is version 1 of the log"),
        (GOOD | {"v": 2}, "event 'JobFinished' of version 2 is not known; this is version 1 of the log"),
        (
            GOOD | {"event": "JobEaten"},
            "event 'JobEaten' of version 1 is not known; this is version 1 of the log",
        ),
        (GOOD | {"outcome": "eaten"}, "a record of JobFinished is damaged: 'eaten' is not a valid State"),
        (GOOD | {"time_s": "soon"}, "a record of JobFinished is damaged: could not convert string"),
        (GOOD | {"more": 1}, "a record of JobFinished is damaged: "),
        ({"v": 1, "event": "JobFinished", "time_s": 1.0}, "a record of JobFinished is damaged: "),
        (
            {"v": 1, "event": "JobSubmitted", "time_s": 1.0, "job": {"gpus": 1}},
            "a job of the log is damaged: ",
        ),
        ({"v": 1, "event": "JobSubmitted", "time_s": 1.0, "job": 7}, "a record of JobSubmitted is damaged: "),
        ({"v": 1, "event": "NodeJoined", "time_s": 1.0, "node": {}}, "a record of NodeJoined is damaged: "),
        (
            {"v": 1, "event": "ReservationMade", "time_s": 1.0, "reservation": {"name": "r"}},
            "a record of ReservationMade is damaged: ",
        ),
        ({"v": 1, "event": "JobChanged", "time_s": 1.0, "changes": 3}, "a record of JobChanged is damaged: "),
    ],
)
def test_damaged_records_are_refused_in_one_line(record, why):
    assert complaint(from_record, record).startswith(why)
