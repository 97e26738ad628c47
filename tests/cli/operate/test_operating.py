"""`nodes`, `drain`, `undrain`, `policy` and `status` against a real controller."""

from __future__ import annotations

import json
import os

import pytest

from controller_cases import UNTIL, Commands, controlled, until
from trainyard import __version__


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    yield from controlled(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def run(yard, monkeypatch, capsys):
    return Commands(yard, monkeypatch, capsys)


def table(text):
    return [line.split() for line in text.splitlines()[1:]]


def test_nodes_and_what_is_used_of_them(yard, run):
    assert table(run.out("nodes")) == [
        ["V100-0", "ready", "V100", "0/2", "0/2", "0/2", "-"],
        ["V100-1", "ready", "V100", "0/2", "0/2", "0/2", "-"],
    ]
    job = run.out("submit", "--gpus", "2", "--", "sh", "-c", UNTIL.format("used")).strip()
    yard.reaches(job, "running")
    (used,) = [node for node in table(run.out("nodes")) if node[6] == job]
    assert used[3:6] == ["2/2", "2/2", "2/2"]
    (node,) = [node for node in run.json("nodes", "--json") if node["jobs"]]
    assert (node["gpus_used"], node["gpus"], node["jobs"]) == (2, 2, [job])
    (yard.folder / "used").touch()
    yard.reaches(job, "done")


def test_drain_keeps_new_jobs_away_and_undrain_brings_a_node_back(yard, run):
    job = run.out("submit", "--", "sh", "-c", UNTIL.format("goes-on")).strip()
    (first,) = yard.reaches(job, "running")["nodes"]
    assert run.out("drain", first, "--reason", "disk swap") == f"{first} draining ({job} still there)\n"
    later = run.out("submit", "--", "true").strip()
    assert first not in yard.reaches(later, "done")["attempts"][0]["nodes"]
    assert yard.job(job)["state"] == "running"
    (yard.folder / "goes-on").touch()
    yard.reaches(job, "done")
    until(lambda: [node[1] for node in table(run.out("nodes")) if node[0] == first] == ["drained"])
    assert run.out("undrain", first) == f"{first} ready\n"
    assert run.json("drain", first, "--json")["state"] == "drained"
    assert run.json("undrain", first, "--json")["state"] == "ready"


def test_a_node_that_is_not_there(run):
    wrong = "there is no node gpu9; trainyard nodes shows them"
    assert run.error("drain", "gpu9") == (2, wrong)
    code, out, _ = run("undrain", "gpu9", "--json")
    assert (code, json.loads(out)["error"]) == (2, {"code": "not_found", "message": wrong, "field": None})


def test_the_policy_and_another_one(yard, run):
    first = run.out("policy").strip()
    assert run.json("policy", "--json") == {"policy": first}
    assert run.out("policy", "set", "las+pack") == "las+pack\n"
    assert run.out("policy") == "las+pack\n"
    assert yard.ask("/status")["policy"] == "las+pack"
    assert run.json("policy", "set", first, "--json") == {"policy": first}


def test_a_policy_that_is_not_there(run):
    before = run.out("policy")
    code, wrong = run.error("policy", "set", "fifa")
    assert code == 2
    assert "did you mean 'fifo'?" in wrong
    assert run.out("policy") == before


def test_status(yard, run):
    first, second, third, *_ = run.out("status").splitlines()
    assert first.startswith(f"controller {__version__} on {os.uname().nodename}, pid {yard.process.pid}, up ")
    assert ", epoch 1; store sqlite (" in first
    assert "; backend local, 2 nodes, answers" in first
    assert second.startswith(f"policy {run.out('policy').strip()}; jobs: ")
    assert "; limits: " in third
    assert run.json("status", "--json")["pid"] == yard.process.pid


@pytest.mark.parametrize("verb", ["status", "nodes", "policy", "drain", "undrain", "policy set"])
def test_every_command_has_help(run, verb):
    assert f"trainyard {verb}" in run.out(*verb.split(), "--help")
