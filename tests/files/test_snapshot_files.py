"""Snapshot and failures files."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from conftest import complaint_about
from trainyard.errors import InputError
from trainyard.files.failures import load_failures
from trainyard.files.snapshot import SnapshotJob, load_snapshot
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile

ZOO = {"gnmt": Profile("gnmt")}
CLUSTER = {"nodes": [{"count": 2, "gpus": 4, "gpu_type": "V100"}, {"count": 1, "gpus": 4, "gpu_type": "K80"}]}


BOOKS = {"met": 0, "rows": [], "target": [], "free_cpus": [], "free_memory_gb": [], "said": {}}
ZEROS = "remaining since_s given_since_s attained executed met saved run_since_s restarts preemptions"
RECORD = {"seq": 1, "trained_with": 0} | dict.fromkeys(ZEROS.split(), 0)
LENGTH = dict.fromkeys(("total", "done", "saved", "look_s", "mean", "p10", "p90"), 1) | {"source": "guess"}


def job(job_id="a", **more):
    return {"job_id": job_id, "arrival_s": 0, "gpus": 2, "duration_s": 100, **more}


def snapshot(*jobs, **more):
    return {"now_s": 50, "cluster": CLUSTER, "jobs": list(jobs), **more}


def test_a_whole_snapshot(tmp_path):
    held = {"V100-0": {"gpus": 1, "servers": 1, "cpus": 5, "memory_gb": 70}, "V100-1": {"gpus": 1}}
    running = job(arrival_s=5, remaining_s=40, attained_gpu_s=120, note=1, allocation=held)
    waiting = {
        "job_id": "b",
        "arrival_s": 1,
        "gpus": 1,
        "samples": 9,
        "model": "gnmt",
        "remaining_samples": 8,
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps(snapshot(running, waiting)))
    spec = load_snapshot(path, ZOO)
    assert spec.now_s == 50.0
    assert [node.node_id for node in spec.cluster.nodes] == ["V100-0", "V100-1", "K80-0"]
    first = Job("b", 1.0, 1, samples=9.0, model="gnmt", profile=ZOO["gnmt"])
    shares = (Share("V100-0", 1, 1, 5.0, 70.0), Share("V100-1", 1, 0, 3.0, 62.5))
    assert spec.jobs == (
        SnapshotJob(first, remaining_samples=8.0),
        SnapshotJob(Job("a", 5.0, 2, 100.0), None, 40.0, 120.0, Allocation(shares)),
    )


def test_the_standard_input(monkeypatch):
    data = json.dumps(snapshot(job(profile={"batch": 8}, allocation={}))).encode()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert load_snapshot("-").jobs[0].job.profile == Profile(batch=8)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(InputError, match="standard input: the file is empty; it must hold a snapshot"):
        load_snapshot("-")


WRONG = {
    "no time": (
        {"cluster": CLUSTER, "jobs": []},
        "field now_s: is missing; it must be a number of at least 0",
    ),
    "no cluster": (
        {"now_s": 0, "jobs": []},
        "field cluster: is missing; it must be written as {key: value}",
    ),
    "no jobs": ({"now_s": 0, "cluster": CLUSTER}, "field jobs: is missing; it must be written as [...]"),
    "key": (snapshot(job(), job_s=1), "field job_s: unknown key 'job_s'; did you mean 'jobs'?"),
    "cluster": (
        {"now_s": 0, "cluster": {"nodes": [{"count": 1}]}, "jobs": []},
        "field cluster.nodes[0].gpus: is missing; it must be a whole number from 1 to 1000000",
    ),
    "job key": (
        snapshot(job(alocation={})),
        "field jobs[0].alocation: unknown field 'alocation'; did you mean 'allocation'?",
    ),
    "job value": (
        snapshot(job(), job("b", gpus=0)),
        "s.json, line 27, field jobs[1].gpus: 0 is too small; it must be",
    ),
    "twice": (
        snapshot(job(), job()),
        "field jobs[1].job_id: 'a' is already the id of the job in jobs[0]; it must be unique",
    ),
    "model": (
        snapshot(job(model="gmnt")),
        "unknown model 'gmnt'; did you mean 'gnmt'? (a job's 'profile' brings a model of your own)",
    ),
    "profile": (
        snapshot(job(profile={"batch": 0})),
        "field jobs[0].profile.batch: 0 is too small; it must be a whole",
    ),
    "too big": (
        snapshot(job(gpus=99)),
        "field jobs[0].gpus: job 'a' needs 99 GPUs; the cluster has 12, ask for at most",
    ),
    "type": (
        snapshot(job(gpu_type="V10")),
        "field jobs[0].gpu_type: job 'a' wants unknown GPU type 'V10'; did you mean",
    ),
    "both": (
        snapshot(job(remaining_s=1, remaining_samples=1)),
        "field jobs[0].remaining_s: remaining_samples and remaining_s are both given; give one of them",
    ),
    "samples left": (
        snapshot(job(remaining_samples=1)),
        "field jobs[0].remaining_samples: the job's work is given as duration_s; give remaining_s",
    ),
    "samples left of nobody knows what": (
        snapshot(job(duration_s=None, remaining_samples=1)),
        "field jobs[0].remaining_samples: samples need a model or a profile to tell their speed; give one",
    ),
    "both lengths": (
        snapshot(job(samples=1, model="gnmt")),
        "field jobs[0].duration_s: duration_s and samples are both given; give exactly one of them",
    ),
    "history": (
        snapshot(books={**BOOKS, "history": [{"totals_s": [1, 0]}]}),
        "field books.history[0].totals_s[1]: 0 is too small; it must be a number above 0",
    ),
    "correction": (
        snapshot(books={**BOOKS, "corrections": [{"kind": "k", "measured": -1, "believed": 1}]}),
        "field books.corrections[0].measured: -1 is too small; it must be a number above 0",
    ),
    "length": (
        snapshot(job(record={**RECORD, "length": {**LENGTH, "source": "luck"}})),
        "field jobs[0].record.length.source: 'luck' is not a choice; it must be 'told' or",
    ),
    "too much left": (
        snapshot(job(remaining_s=101)),
        "field jobs[0].remaining_s: 101 is more than the job's duration_s; it must be at most 100",
    ),
    "nothing left": (
        snapshot(job(remaining_s=0)),
        "field jobs[0].remaining_s: 0 is too small; it must be a number above",
    ),
    "attained": (
        snapshot(job(attained_gpu_s=-1)),
        "field jobs[0].attained_gpu_s: -1 is too small; it must be a number",
    ),
    "node": (
        snapshot(job(allocation={"V100-9": {"gpus": 2}})),
        "field jobs[0].allocation.V100-9: unknown node 'V100-9'; did you mean 'V100-",
    ),
    "node type": (
        snapshot(job(gpu_type="K80", allocation={"V100-0": {"gpus": 2}})),
        "field jobs[0].allocation.V100-0: the node has V100 GPUs; job 'a' must run on K80",
    ),
    "gang": (
        snapshot(job(allocation={"V100-0": {"gpus": 1}})),
        "field jobs[0].allocation: 1 GPUs in all; job 'a' must have 2",
    ),
    "before it comes": (
        snapshot(job(arrival_s=51, allocation={"V100-0": {"gpus": 2}})),
        "field jobs[0].allocation: job 'a' arrives at 51 s, after now_s; it must not hold GPUs yet",
    ),
    "range": (
        snapshot(job(max_gpus=3, allocation={"V100-0": {"gpus": 4}})),
        "field jobs[0].allocation: 4 GPUs in all; job 'a' must have 2 to 3",
    ),
    "share key": (
        snapshot(job(allocation={"V100-0": {"gpu": 2}})),
        "allocation.V100-0.gpu: unknown key 'gpu'; did you",
    ),
    "share": (
        snapshot(job(allocation={"V100-0": 2})),
        "jobs[0].allocation.V100-0: 2 is not a mapping; it must be written",
    ),
    "no gpus": (
        snapshot(job(allocation={"V100-0": {"cpus": 2}})),
        "allocation.V100-0.gpus: is missing; it must be",
    ),
    "too many GPUs": (
        snapshot(*(job(i, allocation={"V100-0": {"gpus": 2}}) for i in "abc")),
        "field jobs[2].allocation.V100-0.gpus: the jobs up to this one hold 6 gpus of this node; it has 4",
    ),
    "too many CPUs": (
        snapshot(job(allocation={"V100-0": {"gpus": 2, "cpus": 12.5}})),
        "jobs[0].allocation.V100-0.cpus: the jobs up to this one hold 12.5 cpus of this node; it has 12",
    ),
    "too much memory": (
        snapshot(job(allocation={"V100-0": {"gpus": 2, "memory_gb": 251}})),
        "allocation.V100-0.memory_gb: the jobs up to this one hold 251 memory_gb of this node; it has 250",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_snapshots(tmp_path, case):
    data, message = WRONG[case]
    said = complaint_about(tmp_path / "s.json", json.dumps(data, indent=1), load_snapshot, ZOO)
    assert said.startswith("s.json, line ")
    assert message in said


@pytest.mark.parametrize("profile", ["{5: 1, batch: 2}", "&p {sync: *p}", "[&l [*l]]"])
def test_odd_yaml_profiles(tmp_path, profile):
    path = tmp_path / "s.yaml"
    path.write_text(
        "now_s: 0\ncluster: {nodes: [{count: 1, gpus: 1}]}\njobs:\n"
        f"  - {{job_id: a, arrival_s: 0, gpus: 1, duration_s: 1, profile: {profile}}}\n"
    )
    with pytest.raises(InputError, match=r"s\.yaml, line 4, field jobs\[0\]\.profile"):
        load_snapshot(path)


def test_failures_are_sorted_by_time(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("node,time_s,repair_s,note\nGPU-1,50,10,disk\nGPU-0,5,60,\n")
    assert load_failures(path, uniform_cluster(2)) == [(5.0, "GPU-0", 60.0), (50.0, "GPU-1", 10.0)]
    path.write_text("time_s,node,repair_s\n")
    assert load_failures(path, uniform_cluster(2)) == []


WRONG_FAILURES = {
    "empty": ("", "f.csv: the file is empty; it must hold a header line time_s,node,repair_s"),
    "column": (
        "time_s,node\n1,GPU-0",
        "line 1, field repair_s: column 'repair_s' is missing; the first line must name the",
    ),
    "near": (
        "time,node,repair_s\n1,GPU-0,1",
        "line 1, field time: unknown field 'time'; did you mean 'time_s'?",
    ),
    "node": (
        "time_s,node,repair_s\n1,GPU-7,1",
        "line 2, field node: unknown node 'GPU-7'; did you mean 'GPU-",
    ),
    "time": (
        "time_s,node,repair_s\n-1,GPU-0,1",
        "line 2, field time_s: -1 is too small; it must be a number of at least 0",
    ),
    "repair": (
        "time_s,node,repair_s\n1,GPU-0,0",
        "line 2, field repair_s: 0 is too small; it must be a number above 0",
    ),
    "cell": (
        "time_s,node,repair_s\n1,GPU-0,",
        "f.csv, line 2, field repair_s: is missing; it must be a number above 0",
    ),
    "cells": (
        "time_s,node,repair_s\n1,GPU-0",
        "f.csv, line 2: 2 cells in a table of 3 columns; every row must have 3",
    ),
}


@pytest.mark.parametrize("case", WRONG_FAILURES)
def test_wrong_failures(tmp_path, case):
    content, message = WRONG_FAILURES[case]
    assert message in complaint_about(tmp_path / "f.csv", content, load_failures, uniform_cluster(2))
