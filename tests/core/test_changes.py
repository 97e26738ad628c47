"""What may be changed of a job after it was submitted, and of the rules."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf, nan

import pytest

from conftest import complaint
from real_cases import Real, on, real
from trainyard.core.events import JobCancelled, JobChanged, JobHeld, JobReleased, JobRetried
from trainyard.core.instructions import Stop
from trainyard.core.real.changes import CHANGEABLE, CHANGEABLE_RULES, changed_job, changed_rules
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.terms import Terms

RIGID = Job("a", 0.0, 4, 100.0, terms=Terms(retries=1, time_limit_s=50.0))
ELASTIC = replace(RIGID, min_gpus=2, max_gpus=8)
SIZED = replace(ELASTIC, sizes=(2, 4, 8))


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ({}, ELASTIC),
        ({"priority": -3}, replace(ELASTIC, priority=-3)),
        ({"deadline_s": 70}, replace(ELASTIC, deadline_s=70.0)),
        ({"deadline_s": None}, ELASTIC),
        ({"min_gpus": 4}, replace(ELASTIC, min_gpus=4)),
        ({"min_gpus": None}, replace(ELASTIC, min_gpus=None)),
        ({"max_gpus": 4, "min_gpus": 1}, replace(ELASTIC, min_gpus=1, max_gpus=4)),
        ({"time_limit_s": inf}, replace(ELASTIC, terms=Terms(retries=1))),
        ({"retries": 0}, replace(ELASTIC, terms=Terms(time_limit_s=50.0))),
        ({"retries": 7, "time_limit_s": 9}, replace(ELASTIC, terms=Terms(7, time_limit_s=9.0))),
    ],
    ids=str,
)
def test_what_may_be_changed(changes, after):
    assert changed_job(ELASTIC, changes) == after


def test_a_job_without_terms_gets_some():
    assert changed_job(replace(RIGID, terms=None), {"retries": 2}).terms == Terms(retries=2)
    assert changed_job(replace(RIGID, terms=None), {"priority": 2}).terms is None


def test_numbers_of_seconds_are_of_one_kind():
    made = changed_job(RIGID, {"deadline_s": 7, "time_limit_s": 9})
    assert (type(made.deadline_s), type(made.terms.time_limit_s)) == (float, float)


LIMITS = "job a asks for 4 GPUs, so these are no limits of its size"


@pytest.mark.parametrize(
    ("job", "changes", "why"),
    [
        (RIGID, {"gpus": 2}, "'gpus' of a job cannot be changed; did you mean 'min_gpus'?"),
        (RIGID, {"prioritty": 2}, "'prioritty' of a job cannot be changed; did you mean 'priority'?"),
        (RIGID, {"priority": nan}, "'priority' of job a cannot be nan"),
        (RIGID, {"priority": None}, "'priority' of job a must be a whole number, not None"),
        (RIGID, {"priority": 1.5}, "'priority' of job a must be a whole number, not 1.5"),
        (RIGID, {"deadline_s": inf}, "'deadline_s' of job a cannot be inf"),
        (RIGID, {"time_limit_s": -inf}, "'time_limit_s' of job a cannot be -inf"),
        (RIGID, {"time_limit_s": -1}, "'time_limit_s' of job a must be 0 or more"),
        (RIGID, {"time_limit_s": None}, "'time_limit_s' of job a must be 0 or more"),
        (RIGID, {"retries": 2, "time_limit_s": -1}, "'time_limit_s' of job a must be 0 or more"),
        (RIGID, {"retries": -1}, "'retries' of job a must be 0 or more"),
        (RIGID, {"retries": 0.5}, "'retries' of job a must be a whole number, not 0.5"),
        (RIGID, {"max_gpus": 8}, "job a is not elastic: it runs with 4 GPUs or not at all"),
        (ELASTIC, {"min_gpus": 5}, LIMITS),
        (ELASTIC, {"min_gpus": 0}, LIMITS),
        (ELASTIC, {"max_gpus": 3}, LIMITS),
        (ELASTIC, {"max_gpus": 2.5}, "'max_gpus' of job a must be a whole number, not 2.5"),
        (SIZED, {"min_gpus": 9}, LIMITS),
        (SIZED, {"max_gpus": 0}, LIMITS),
        (SIZED, {"max_gpus": 1}, LIMITS),
    ],
    ids=str,
)
def test_what_may_not(job, changes, why):
    assert complaint(changed_job, job, changes) == why
    r = Real(job)
    assert r.why(JobChanged(1.0, "a", changes)) == why


def test_sizes_go_with_the_limits():
    made = changed_job(SIZED, {"min_gpus": 3, "max_gpus": 7})
    assert (made.least_gpus, made.most_gpus) == (4, 4)


@pytest.mark.parametrize(("name", "value"), [("priority", 5), ("deadline_s", 70.0), ("min_gpus", 3)])
def test_a_change_shows_wherever_the_job_is(name, value):
    r = Real(ELASTIC, replace(ELASTIC, job_id="b"))
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobChanged(1.0, "a", {name: value})) == []
    assert getattr(r.record("a").job, name) == getattr(r.yard.table.jobs[0], name) == value
    assert (r.state("a"), r.record("a").start) == ("running", 1)
    r.tell(JobHeld(2.0, "b"))
    assert r.tell(JobChanged(3.0, "b", {name: value})) == []
    r.tell(JobReleased(4.0, "b"))
    assert getattr(r.yard.table.jobs[-1], name) == value


def test_every_field_is_tried_here():
    assert set(CHANGEABLE) == {"priority", "deadline_s", "min_gpus", "max_gpus", "time_limit_s", "retries"}


def test_a_priority_has_to_be_admitted_from_now_on():
    r = Real(real())
    assert r.yard.table.bound == 0
    r.tell(JobChanged(1.0, "a", {"priority": 5}))
    assert r.yard.table.bound == 1
    r.tell(JobChanged(2.0, "a", {"priority": 0}))
    assert r.yard.table.bound == 0


def test_a_running_job_that_is_too_large_now_stops_and_waits():
    r = Real(ELASTIC)
    r.decide(0.0, a=on(n0=4, n1=2))
    assert r.tell(JobChanged(5.0, "a", {"max_gpus": 6})) == []
    assert r.tell(JobChanged(6.0, "a", {"max_gpus": 5})) == [Stop("a")]
    assert r.yard.story.of("a")[-1].cause == "its size limits changed"
    r.stopped(7.0, "a")
    assert (r.state(), r.waiting(), r.record().preemptions) == ("waiting", ["a"], 0)


def test_a_job_that_is_too_small_now_stops_too():
    r = Real(ELASTIC)
    r.decide(0.0, a=on(n0=2))
    assert r.tell(JobChanged(6.0, "a", {"min_gpus": 3})) == [Stop("a")]


def test_what_was_planned_for_a_job_is_dropped_if_it_is_no_size_any_more():
    r = Real(real("b"), ELASTIC)
    r.decide(0.0, b=on(n0=4))
    r.decide(1.0, b=None, a=on(n0=2))
    assert r.tell(JobChanged(2.0, "a", {"min_gpus": 4})) == []
    assert (r.waiting(), r.stopped(3.0, "b")) == (["b", "a"], [])


def test_a_move_is_dropped_if_it_is_no_size_any_more():
    r = Real(ELASTIC)
    r.decide(0.0, a=on(n0=4))
    r.decide(1.0, a=on(n0=4, n1=4))
    assert r.tell(JobChanged(2.0, "a", {"max_gpus": 4})) == []
    assert r.stopped(3.0, "a") == []
    assert r.waiting() == ["a"]


def test_more_retries_count_at_once():
    r = Real(real())
    r.tell(JobChanged(0.0, "a", {"retries": 1}))
    assert r.record().job.terms.retries == 1
    r.tell(JobCancelled(1.0, "a"))
    assert r.why(JobChanged(2.0, "a", {"retries": 2})) == "job a is cancelled"
    r.tell(JobRetried(3.0, "a"))
    assert r.record().job.terms.retries == 1


# -- rules ---------------------------------------------------------------------------------------------------

RULES = Rules(round_s=60.0, restart_s=5.0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"round_s": None},
        {"restart_s": None},
        {"round_s": 1e-3, "restart_s": 0.0, "start_s": 0.0},
        {"seed": 0, "back_off_s": 0.0, "most_back_off_s": 0},
        {"most_starts": 1, "most_idle": 1, "many_unsaved": 1},
    ],
    ids=str,
)
def test_rules_that_may_be_changed(changes):
    assert changed_rules(RULES, changes) == replace(RULES, **changes)


def test_every_rule_that_may_be_changed_is_one():
    assert set(CHANGEABLE_RULES) <= {field.name for field in fields(Rules)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rounds": 1}, "the rule 'rounds' cannot be changed; did you mean 'round_s'?"),
        ({"seed": 1, "sead": 1}, "the rule 'sead' cannot be changed; did you mean 'seed'?"),
        ({"round_s": 0}, "the rule 'round_s' cannot be 0"),
        ({"round_s": -1.0}, "the rule 'round_s' cannot be -1.0"),
        ({"restart_s": -0.5}, "the rule 'restart_s' cannot be -0.5"),
        ({"restart_s": inf}, "the rule 'restart_s' cannot be inf"),
        ({"start_s": None}, "the rule 'start_s' cannot be None"),
        ({"round_s": None, "back_off_s": nan}, "the rule 'back_off_s' cannot be nan"),
        ({"most_starts": 0}, "the rule 'most_starts' cannot be 0"),
        ({"most_idle": 1.5}, "the rule 'most_idle' must be a whole number, not 1.5"),
        ({"many_unsaved": None}, "the rule 'many_unsaved' cannot be None"),
        ({"seed": 0.5}, "the rule 'seed' must be a whole number, not 0.5"),
    ],
    ids=str,
)
def test_rules_that_cannot_be(changes, why):
    assert complaint(changed_rules, RULES, changes) == why
