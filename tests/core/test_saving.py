"""Snapshots of a run: written, read again, and nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conftest import complaint_about
from trainyard.api import known_models
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.core.validate import validate
from trainyard.files.snapshot import load_snapshot
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.state.record import Record

RACKS = Cluster("racks", tuple(Node(f"rack-{i}", "V100", 4, 12.0, 64.0) for i in range(3)))
ODD = Cluster("odd", (Node("anna", "V100", 4, 12.0, 64.0), Node("berta", "V100", 4, 12.0, 64.0)))
JOBS = [
    Job("a", 0.0, 2, 1000.0, min_gpus=1, max_gpus=4),
    Job("b", 10.0, 4, 300.0),
    Job("c", 20.0, 3, 70.0),
    Job("d", 30.0, 4, 900.0, cpus=4.0),
]
# Numbers of a run, not of a job: they begin anew.
OWN = ("job", "occupies", "start", "stopping")


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
    return [[getattr(r, name) for name in Record.__slots__ if name not in OWN] for r in view.table.records]


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
    for job in JOBS:
        assert read.observed.record(job.job_id) == view.observed.record(job.job_id)


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
