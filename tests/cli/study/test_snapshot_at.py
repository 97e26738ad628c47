"""`simulate --snapshot-at`: what it writes is what `plan` reads, and decides as the run did."""

from __future__ import annotations

import json

import pytest

from conftest import command
from trainyard import simulate

CLUSTER = "nodes:\n  - {count: 2, gpus: 4, gpu_type: V100, prefix: rack}\n"
JOBS = "job_id,arrival_s,gpus,duration_s,min_gpus,max_gpus\na,0,2,500,1,8\nb,10,4,300,,\nc,20,4,50,,\n"
INPUTS = ["--cluster", "c.yaml", "--jobs", "j.csv", "--restart-s", "5"]


@pytest.fixture
def run_cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    return lambda *words: command(monkeypatch, capsys, *words)


@pytest.mark.parametrize("policy", ["srtf", "srtf+doubling", "las+doubling(mode=explore,explore_s=30)"])
def test_plan_decides_as_the_run_did(run_cli, tmp_path, policy):
    code, _, _ = run_cli("simulate", *INPUTS, "--policy", policy, "--snapshot-at", "15", "s.json")
    assert code == 0
    now_s = json.loads((tmp_path / "s.json").read_text())["now_s"]
    assert now_s == 20.0
    code, text, _ = run_cli("plan", "s.json", "--policy", policy, "--json")
    assert code == 0
    plan = json.loads(text)["plan"]
    events = [line for line in _story(policy) if line[0] == now_s]
    assert {job_id: nodes for _, job_id, nodes in events} == {
        job_id: sorted((n, share["gpus"]) for n, share in plan[job_id]["nodes"].items())
        for _, job_id, _ in events
    }


def _story(policy):
    """Starts of the same run: time, job, nodes."""
    result = simulate("c.yaml", "j.csv", policy, restart_s=5.0)
    for change in result.story:
        if change.after.value == "running":
            yield change.time_s, change.job_id, sorted((s.node, s.gpus) for s in change.allocation.shares)


def test_a_time_after_the_last_decision_is_refused(run_cli, tmp_path):
    code, _, said = run_cli("simulate", *INPUTS, "--snapshot-at", "1e6", "s.json", "--out", "out")
    assert code == 2
    assert "--snapshot-at 1e+06: the last decision was at" in said
    assert not (tmp_path / "s.json").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at", ["nan", "-1", "soon", ""])
def test_what_is_no_time_is_refused(run_cli, at):
    code, _, said = run_cli("simulate", *INPUTS, "--snapshot-at", at, "s.json")
    assert code == 2
    assert "give seconds from the start, 0 or more" in said


def test_a_run_without_any_decision_is_told_so(run_cli, tmp_path):
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,100,2,500\n")
    code, _, said = run_cli("simulate", *INPUTS, "--until-s", "50", "--snapshot-at", "1", "s.json")
    assert code == 2
    assert "--snapshot-at 1: there was no decision; give an earlier time" in said


def test_a_file_that_cannot_be_written_is_refused_before_the_run(run_cli):
    code, _, said = run_cli("simulate", *INPUTS, "--snapshot-at", "1", "nowhere/s.json")
    assert code == 2
    assert "there is no directory 'nowhere'" in said


def test_the_file_is_json_for_everybody(run_cli, tmp_path):
    """The market's certificate may be infinite."""
    code, _, _ = run_cli(
        "simulate", *INPUTS, "--policy", "market(fair=0.01)", "--snapshot-at", "15", "s.json"
    )
    assert code == 0

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    json.loads((tmp_path / "s.json").read_text(), parse_constant=refuse)
