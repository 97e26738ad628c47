"""Jobs in line: the quick way to choose gives what walking down the whole ranking gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import checked
from policy_cases import nodes_of, yard_of
from stage_cases import ORDERS
from trainyard.core import yard as core
from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
)
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.choose import lines as line
from trainyard.policy.choose.lines import Lines, lines_of
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.by_key import KeyOrder, SteadyOrder
from trainyard.policy.order.las import Las
from trainyard.policy.order.srtf import Srtf
from trainyard.state import journal
from yard_cases import SLOW, STALLS, STEPS, Driven

# Every order of the registry under which jobs stand in line.
IN_LINE = [way for way in ORDERS if isinstance(parse_policy(way).order, SteadyOrder)]
IN_LINE += ["las(threshold_s=30)"]


# Jobs that are level with each other but for their submission, which is in the last bits of their keys.
LEVEL = [
    Job(f"j{i}", at, gpus, length)
    for i, (at, gpus, length) in enumerate(
        [(0.0, 2, 15.0), (0.0, 4, 8.0), (1.0, 4, 8.0), (0.0, 3, 8.0), (0.0, 4, 8.0)]
    )
]


class Walked(KeyOrder):
    """The same order, but under which nobody stands in line."""

    def __init__(self, order):
        self.order = order
        self.takes_turns = order.takes_turns

    def key(self, snapshot):
        return self.order.key(snapshot)

    def wake_s(self, snapshot, changes):
        return self.order.wake_s(snapshot, changes)


@st.composite
def workloads(draw):
    numbers = st.tuples(st.integers(0, 60), st.sampled_from([1, 1, 1, 2, 3, 4, 8, 12]), st.integers(1, 300))
    rows = draw(st.lists(numbers, min_size=1, max_size=60))
    return [Job(f"j{i}", float(at), gpus, float(length)) for i, (at, gpus, length) in enumerate(rows)]


@pytest.mark.parametrize("name", IN_LINE)
@settings(max_examples=25, deadline=None)
@example(jobs=LEVEL, round_s=7.0, restart_s=0.0, more=2)
@given(workloads(), st.sampled_from([None, 7.0]), st.sampled_from([0.0, 5.0]), st.sampled_from([2, 4]))
def test_in_line_or_walked_down_the_same_jobs_run(name, jobs, round_s, restart_s, more):
    policy = parse_policy(name)
    options = {"round_s": round_s, "restart_s": restart_s}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "MORE", more)
        quick = checked(uniform_cluster(3, 4), jobs, policy, **options)
    slow = checked(uniform_cluster(3, 4), jobs, replace(policy, order=Walked(policy.order)), **options)
    assert np.array_equal(quick.outcomes.finish_s, slow.outcomes.finish_s)
    assert np.array_equal(quick.outcomes.preemptions, slow.outcomes.preemptions)


# -- any state that events may lead to --------------------------------------------------------------------


def walked(order, snapshot):
    """Who stops and who starts if all active jobs are sorted by key and then as submitted."""
    records = snapshot.table.records
    keys = [order.key_of(r, snapshot.now_s) if r.given else order.waiting_key(r) for r in records]
    assert keys == order.key(snapshot).tolist()  # one by one or all at once
    left, stops, starts = snapshot.up_gpus, set(), []
    for _, _, record in sorted((key, r.seq, r) for key, r in zip(keys, records, strict=True)):
        if record.gpus <= left:
            left -= record.gpus
            if not record.given:
                starts.append(record)
        elif record.given:
            stops.add(record)
    return stops, starts


def check_bounds(order, lines, now_s):
    """No job has a larger key than the bound of any with no smaller a measure, in whatever line."""
    runs = []
    for name, stands in lines.running.items():
        pace, drift = order.motion(name)
        measures = [pace * (token + drift * now_s) for token, _, _ in stands]
        assert measures == sorted(measures)
        runs += [(m, order.key_of(record, now_s)) for m, (_, _, record) in zip(measures, stands, strict=True)]
    for measure, key in runs:
        assert max(other for m, other in runs if m <= measure) <= order.bound(measure, now_s)
        assert min(m for m, other in runs if other >= key) >= order.least(key, now_s)


class InLine(Driven):
    """In every decision, lines that were kept and lines made anew choose as the walk does."""

    def __init__(self, policy, *args):
        super().__init__(policy, *args)
        self.order = self.policy.order
        self.kept = Lines(self.order)

    def decide(self, snapshot):
        expected = walked(self.order, snapshot)
        new = Lines(self.order)
        new.catch_up(snapshot)
        for lines in (new, lines_of(self.order, snapshot)):
            stops, starts = lines.choose(snapshot)
            assert (set(stops), starts) == expected
            assert len(stops) == len(expected[0])
            check_bounds(self.order, lines, snapshot.now_s)
        return super().decide(snapshot)

    def look(self, _):
        """Ask lines that were left alone for any number of steps."""
        snapshot, kept = self.yard.snapshot(self.now_s), self.kept
        kept.catch_up(snapshot)
        stops, starts = kept.choose(snapshot)
        assert (set(stops), starts) == walked(self.order, snapshot)
        stands = [
            stand for some in (kept.waiting, kept.running) for stood in some.values() for stand in stood
        ]
        assert sorted(record.seq for _, _, record in stands) == sorted(r.seq for r in snapshot.table.records)


@pytest.mark.parametrize("name", IN_LINE)
@settings(max_examples=40, deadline=None)
@given(
    STEPS,
    st.sampled_from([uniform_cluster(3, 4), SLOW]),
    st.sampled_from(STALLS),
    st.sampled_from([0.0, 1e7]),
    st.sampled_from([(2, 4), (4, 8192)]),
)
def test_lines_agree_with_a_walk_over_all_keys(name, steps, cluster, stalls, now_s, limits):
    """Whatever came before: ties, stalls, jobs that wait for their nodes, other rates than asked for."""
    more, kept = limits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "MORE", more)
        patch.setattr(journal, "KEPT", kept)
        patch.setattr(core, "KEPT", kept)
        driven = InLine(name, cluster, stalls, now_s)
        for kind, number in [*steps, ("look", 0), ("swift", 0)]:
            driven.step(kind, number)


# -- by hand ----------------------------------------------------------------------------------------------


def stood(lines):
    """Who stands where, first to last."""
    return [
        {name: "".join(record.job_id for _, _, record in stands) for name, stands in which.items() if stands}
        for which in (lines.waiting, lines.running)
    ]


JOBS = [
    Job(name, 0.0, gpus, length) for name, gpus, length in [("a", 2, 90.0), ("b", 1, 20.0), ("c", 2, 30.0)]
]


def test_who_waits_stands_by_gpus_and_who_runs_by_its_end():
    yard = yard_of(nodes_of(4), [*JOBS, Job("d", 0.0, 1, 5.0)], {"a": {"n0": 2}, "b": {"n0": 1}}, "srtf")
    lines = lines_of(Srtf(), yard.snapshot(0.0))
    assert stood(lines) == [{2: "c", 1: "d"}, {0: "ba"}]
    yard.handle(JobFinished(5.0, "b"))
    yard.handle(JobSubmitted(5.0, Job("e", 5.0, 2, 10.0)))
    lines.catch_up(yard.snapshot(5.0))
    assert stood(lines) == [{2: "ec", 1: "d"}, {0: "a"}]


def test_a_job_that_was_given_gpus_but_has_not_started_stands_by_its_key():
    yard = yard_of(
        nodes_of(4), [Job("long", 0.0, 4, 100.0), Job("short", 0.0, 4, 5.0)], {"long": {"n0": 4}}, "srtf"
    )
    yard.handle(DecisionDue(1.0))  # `short` takes over as soon as `long` has stopped
    assert stood(lines_of(Srtf(), yard.snapshot(1.0))) == [{4: "long"}, {None: "short"}]
    yard.handle(JobStopped(2.0, "long"))
    assert stood(lines_of(Srtf(), yard.snapshot(2.0))) == [{4: "long"}, {0: "short"}]


def test_service_grows_alike_with_equal_gpus():
    held = {"a": {"n0": 2}, "b": {"n0": 1}, "c": {"n0": 2}}
    snapshot = yard_of(nodes_of(8), JOBS, held).snapshot(3.0)
    assert stood(lines_of(Las(), snapshot)) == [{}, {2: "ac", 1: "b"}]
    assert stood(lines_of(Las(threshold_s=(100.0,)), snapshot)) == [{}, {1: "abc"}]


def test_lines_are_kept_with_the_snapshot_for_each_order():
    snapshot = yard_of(nodes_of(4), JOBS).snapshot(0.0)
    one, other = Srtf(), Srtf()
    assert lines_of(one, snapshot) is lines_of(one, snapshot)
    assert lines_of(one, snapshot) is not lines_of(other, snapshot)
    assert lines_of(one, snapshot.fork()) is not lines_of(one, snapshot)


def test_nobody_is_looked_at_who_cannot_be_concerned(monkeypatch):
    """The last of many running jobs gives way; the keys of those that end soon are not computed."""
    jobs = [Job(f"r{i}", 0.0, 1, 100.0 + i) for i in range(40)]
    held = {job.job_id: {"n0": 1} for job in jobs}
    snapshot = yard_of(nodes_of(40), [*jobs, Job("new", 0.0, 1, 50.0)], held).snapshot(1.0)
    order, asked = Srtf(), []
    monkeypatch.setattr(
        order, "key_of", lambda record, now_s: asked.append(record.job_id) or record.remaining_s(now_s)
    )
    stops, starts = lines_of(order, snapshot).choose(snapshot)
    assert ([r.job_id for r in stops], [r.job_id for r in starts]) == (["r39"], ["new"])
    assert asked == ["r39"]


def test_who_missed_too_much_starts_anew(monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 2)
    yard = yard_of(nodes_of(4), JOBS)
    snapshot = yard.snapshot(0.0)
    lines = lines_of(Srtf(), snapshot)
    yard.handle(JobCancelled(1.0, "b"))
    yard.lengths.set_done(yard.records["a"], 179.0)
    snapshot.table.changed.entries += snapshot.table.records * 3
    snapshot.table.changed.trim()
    assert snapshot.table.changed.since(lines._read) is None
    lines.catch_up(snapshot)
    assert stood(lines) == [{2: "ac"}, {}]


def test_jobs_that_are_nearly_done_may_take_the_places_of_all():
    """Their keys are so small that every running job is in question, down to the first of the line."""
    jobs = [Job("r0", 0.0, 2, 1e8), Job("r1", 0.0, 2, 2e8), Job("x", 1e7, 2, 1e-3), Job("y", 1e7, 2, 2e-3)]
    snapshot = yard_of(nodes_of(4), jobs, {"r0": {"n0": 2}, "r1": {"n0": 2}}).snapshot(1e7)
    stops, starts = lines_of(Srtf(), snapshot).choose(snapshot)
    assert ([r.job_id for r in stops], [r.job_id for r in starts]) == (["r0", "r1"], ["x", "y"])
