"""Snapshots of a run: written, read again, and nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from conftest import complaint_about
from policy_cases import nodes_of, yard_of
from trainyard.api import known_models, plan
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.restore import answer, restore
from trainyard.core.saving import snapshot_record
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.files.snapshot import load_snapshot
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.state.lifecycle import State
from trainyard.state.record import ATTRIBUTES

RACKS = Cluster("racks", tuple(Node(f"rack-{i}", "V100", 4, 12.0, 64.0) for i in range(3)))
ODD = Cluster("odd", (Node("anna", "V100", 4, 12.0, 64.0), Node("berta", "V100", 4, 12.0, 64.0)))
JOBS = [
    Job("a", 0.0, 2, 1000.0, min_gpus=1, max_gpus=4),
    Job("b", 10.0, 4, 300.0),
    Job("c", 20.0, 3, 70.0),
    Job("d", 30.0, 4, 900.0, cpus=4.0),
]
# Numbers of a run, not of a job: they begin anew.
OWN = ("job", "occupies", "start")


def at(cluster, now_s, policy="srtf+doubling", failures=()):
    """The snapshot before the first decision at this time or later."""
    run = Simulator(cluster, JOBS, parse_policy(policy), Rules(restart_s=7.0, seed=3), failures)
    while run.advance():
        if run.now_s >= now_s:
            return run.yard.snapshot(run.now_s)
        run.decide()


def read_again(view, path):
    path.write_text(json.dumps(snapshot_record(view)))
    yard, _ = restore(load_snapshot(path, known_models()))
    validate(yard)
    return yard.snapshot(view.now_s)


def numbers(view):
    return [[getattr(r, name) for name in ATTRIBUTES if name not in OWN] for r in view.table.records]


@pytest.mark.parametrize("now_s", [0.0, 20.0, 70.0, 300.0])
def test_nothing_is_lost(tmp_path, now_s):
    view = at(RACKS, now_s)
    read = read_again(view, tmp_path / "s.json")
    assert numbers(read) == numbers(view)
    assert list(read.target.items()) == list(view.target.items())
    assert [r.job_id for r in read.waiting] == [r.job_id for r in view.waiting]
    assert (read.free.gpus, read.free.cpus, read.free.memory_gb) == (
        view.free.gpus,
        view.free.cpus,
        view.free.memory_gb,
    )
    assert (read.met, read.up_gpus, read.said) == (view.met, view.up_gpus, view.said)
    assert read.rules == replace(view.rules, until_s=float("inf"))
    for record in view.table.records:
        assert read.table.of[record.job_id].see().record() == record.see().record()


def moved_on(policy, now_s):
    """A yard in which `a` was told to stop and has not yet, and others wait for its place."""
    yard = yard_of(nodes_of(4), [Job("a", 0.0, 4, 1000.0)], {"a": {"n0": 4}}, policy)
    yard.handle(JobSubmitted(9.0, Job("b", 5.0, 2, 30.0, min_gpus=1, max_gpus=4)))  # it took its time to come
    yard.handle(JobSubmitted(9.0, Job("c", 9.0, 4, 70.0)))
    yard.handle(DecisionDue(10.0))
    assert list(yard.pending) == ["b"]
    return yard.snapshot(now_s)


@pytest.mark.parametrize("now_s", [10.0, 25.0])
def test_a_job_that_waits_for_others_to_leave_has_not_started(tmp_path, now_s):
    view = moved_on("srtf", now_s)
    read = read_again(view, tmp_path / "s.json")
    b = read.table.of["b"]
    assert (b.given, b.state, b.arrival_s, b.remaining_s(now_s)) == (2, State.WAITING, 9.0, 30.0)
    assert read.remaining_s().tolist() == view.remaining_s().tolist()
    assert read.contention().tolist() == view.contention().tolist()


def test_it_starts_when_it_is_asked_for_a_plan(tmp_path):
    """All that was told to stop is taken to be gone."""
    view = moved_on("srtf", 10.0)
    path, policy = tmp_path / "s.json", parse_policy("srtf")
    path.write_text(json.dumps(snapshot_record(view)))
    found = answer(load_snapshot(path, known_models()), partial(policy.decide, explain=True))
    assert list(found.plan) == ["b"]
    assert found.plan["b"]["finish_s"] == 40.0
    assert sorted(found.waiting) == ["a", "c"]


def test_a_job_whose_cpus_will_change_runs_at_its_old_speed(tmp_path):
    """`b` gets what `a` gives back, as soon as `a` has stopped."""
    resnet = zoo_profile("alexnet")
    yard = Yard(nodes_of(4), lambda snapshot: next(plans))
    both = {name: Allocation((Share("n0", 2, 0, 6.0, 120.0),)) for name in "ab"}
    plans = iter([Plan(both), Plan({"a": None, "b": Allocation((Share("n0", 2, 0, 12.0, 120.0),))})])
    for name in "ab":
        yard.handle(JobSubmitted(0.0, Job(name, 0.0, 2, samples=1e6, profile=resnet)))
    for now_s in (0.0, 10.0):
        yard.handle(DecisionDue(now_s))
    view = yard.snapshot(15.0)
    slow, fast = (yard.speed.rate(view.table.of["b"].job, each["b"]) for each in (both, view.target))
    assert slow < fast
    read = read_again(view, tmp_path / "s.json")
    assert read.table.of["b"].rate == slow
    assert read.remaining_samples().tolist() == view.remaining_samples().tolist()


def test_nodes_that_are_down_stay_down(tmp_path):
    view = at(RACKS, 50.0, failures=[Failure(40.0, "rack-1", 1e4)])
    read = read_again(view, tmp_path / "s.json")
    assert read.up.tolist() == [True, False, True]
    assert read.up_gpus == 8


def test_nodes_of_other_names_get_names_that_a_file_can_say(tmp_path):
    read = read_again(at(ODD, 20.0), tmp_path / "s.json")
    assert read.nodes.ids == ["V100-0", "V100-1"]
    assert {share.node for a in read.target.values() for share in a.shares} <= {"V100-0", "V100-1"}


WRONG = {
    "rows": "books.rows: it must name every job once, each with a 'record' and a seq of its own",
    "target": "books.target: it must name every job that has an allocation once",
    "free_cpus": "books.free_cpus: it must have a number for each node",
}


@pytest.mark.parametrize("key", WRONG)
def test_books_must_be_about_the_jobs_and_nodes(tmp_path, key):
    data = snapshot_record(at(RACKS, 70.0))
    data["books"][key] = data["books"][key][1:]
    said = complaint_about(tmp_path / "s.json", json.dumps(data), load_snapshot, known_models())
    assert WRONG[key] in said


def test_a_node_that_is_down_holds_nothing(tmp_path):
    data = snapshot_record(at(RACKS, 70.0)) | {"down": ["rack-0"]}
    said = complaint_about(tmp_path / "s.json", json.dumps(data), load_snapshot, known_models())
    assert "node 'rack-0' is down, but job" in said


@pytest.mark.parametrize("policy", ["fifo", "srtf", "srtf+drf", "las"])
@pytest.mark.parametrize("now_s", [15.0, 60.0, 400.0])
def test_plan_tells_the_ends_that_the_run_expects(tmp_path, policy, now_s):
    run = Simulator(RACKS, JOBS, parse_policy(policy), Rules(restart_s=7.0))
    while run.advance():
        view = run.yard.snapshot(run.now_s)
        if run.now_s >= now_s:
            (tmp_path / "s.json").write_text(json.dumps(snapshot_record(view)))
        run.decide()
        if run.now_s >= now_s:
            break
    records = run.yard.records
    ends = {
        j: max(r.since, run.now_s) + r.remaining_at(run.now_s) / r.rate for j, r in records.items() if r.given
    }
    found = plan(tmp_path / "s.json", policy)
    assert {job_id: entry["finish_s"] for job_id, entry in found["plan"].items()} == pytest.approx(ends)
    assert sorted([*found["plan"], *found["waiting"]]) == sorted(records)


def test_the_version_rises_with_everything_and_stays_in_forks_and_files(tmp_path):
    yard = yard_of(nodes_of(4, 4), JOBS)
    seen = [yard.snapshot(0.0).version]
    for change in (
        lambda: yard.node_failed(1.0, "n1"),
        lambda: yard.node_repaired(2.0, "n1"),
        lambda: yard.submit(3.0, Job("late", 3.0, 1, 10.0)),
    ):
        change()
        seen.append(yard.snapshot(3.0).version)
    assert seen == sorted(set(seen))
    view = yard.snapshot(3.0)
    assert view.fork().version == view.version
    assert read_again(view, tmp_path / "s.json").version == view.version
    forked = view.fork()
    np.testing.assert_array_equal(forked.table.column(0), view.table.column(0))


def test_a_look_changes_no_books():
    def fair(looks):
        yard = yard_of(nodes_of(4), JOBS[:1])
        for at_s in looks:
            yard.snapshot(at_s)
        yard.submit(0.3, Job("late", 0.3, 1, 10.0))
        yard.out.clear()
        yard.finish(1.1, yard.records["a"], State.CANCELLED)
        return yard.out[-1][4]

    assert fair([]) == fair([0.1, 0.2]) == fair([0.05 + 0.01 * i for i in range(20)])


def test_progress_that_contradicts_the_record_is_refused(tmp_path):
    data = snapshot_record(at(RACKS, 60.0))
    data["jobs"][0]["remaining_s"] = 1.0
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="job 'a': its 'remaining_s' is not what its 'record' says"):
        restore(load_snapshot(tmp_path / "s.json", known_models()))


@pytest.mark.parametrize("wrong", [float("nan"), 1e9, -1.0])
def test_books_with_impossible_room_are_refused(tmp_path, wrong):
    data = snapshot_record(at(RACKS, 60.0))
    data["books"]["free_cpus"] = [wrong, *data["books"]["free_cpus"][1:]]
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="at most what the node has"):
        load_snapshot(tmp_path / "s.json", known_models())
