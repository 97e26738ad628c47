"""What the page about real clusters says, in so many words."""

from __future__ import annotations

import json
import re
from pathlib import Path

from trainyard.core.events import DecisionDue, JobFailed, JobStarted, JobSubmitted
from trainyard.core.instructions import Ignored, Start
from trainyard.core.real.changes import CHANGEABLE
from trainyard.core.real.ends import ENDS, Then
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.core.wire import TYPES, from_record, to_record
from trainyard.core.yard import Yard
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.terms import Terms
from trainyard.policy.grammar import parse_policy

RULES = Rules()
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "real-clusters.md").read_text(encoding="utf-8")
SAID = {
    Then.COUNTED: "counted",
    Then.AGAIN: "tried again",
    Then.START: f"at most {RULES.most_starts} in a row",
    Then.FINAL: "the job has failed",
}


def begun():
    yard = Yard(uniform_cluster(2, 4), parse_policy("srtf").decide, indices=True, remember=9)
    yard.handle(JobSubmitted(0.0, Job("17", 0.0, 2, 600.0, terms=Terms(retries=2))))
    return yard, yard.handle(DecisionDue(1.0))


def test_every_end_is_there_with_what_follows():
    rows = re.findall(r"^\| (`.+?) \|.*\| (.+?) \|$", PAGE, re.MULTILINE)
    told = {kind: follows for kinds, follows in rows for kind in re.findall(r"`(\w+)`", kinds)}
    assert {kind: told.get(kind) for kind in ENDS} == {kind: SAID[then] for kind, then in ENDS.items()}
    assert f"it waits: {RULES.back_off_s:g} s, then 20, 40" in PAGE
    assert f"at most {RULES.most_back_off_s:g} s" in PAGE
    assert f"after {RULES.most_idle} such ends in a row" in PAGE


def test_every_event_and_change_is_there():
    every = PAGE + (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in (*TYPES, *CHANGEABLE) if f"`{name}`" not in every] == []


def test_a_start_has_a_number_and_gpus_and_unknown_jobs_are_ignored():
    yard, (start, *_) = begun()
    assert isinstance(start, Start)
    assert (start.attempt, start.gpus) == (1, {"GPU-0": (0, 1)})
    event = JobStarted(2.0, "18")
    assert [do for do in yard.handle(event) if isinstance(do, Ignored)] == [
        Ignored(event, "job 18 is not known")
    ]


def test_a_twin_takes_a_written_event_as_the_yard_itself_does():
    yard, _ = begun()
    crash = from_record(json.loads(json.dumps(to_record(JobFailed(60.0, "17", "crash", attempt=1)))))
    twins = [yard, fork(yard), yard_of(json.loads(json.dumps(state_of(yard))), yard.decider)]
    for twin in twins:
        twin.handle(crash)
    records = [twin.find("17") for twin in twins]
    assert {(record.state.value, record.trouble.until_s) for record in records} == {("waiting", 70.0)}
