"""Jobs of unknown length on the command line: `plan` takes them, `simulate` hides what it knows."""

from __future__ import annotations

import json

import pytest

from conftest import command

CLUSTER = "nodes:\n  - {count: 2, gpus: 4, gpu_type: V100}\n"
JOBS = "job_id,arrival_s,gpus,duration_s\na,0,2,500\nb,10,4,300\nc,20,4,50\nd,30,8,100\n"
INPUTS = ["--cluster", "c.yaml", "--jobs", "j.csv", "--restart-s", "5"]


@pytest.fixture
def run_cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    return lambda *words: command(monkeypatch, capsys, *words)


def snapshot(*jobs):
    return json.dumps({"now_s": 100, "cluster": {"nodes": [{"count": 1, "gpus": 4}]}, "jobs": jobs})


def job(job_id="a", **more):
    return {"job_id": job_id, "arrival_s": 0, "gpus": 2, **more}


def plan(run_cli, tmp_path, *jobs, policy="srtf"):
    (tmp_path / "s.json").write_text(snapshot(*jobs))
    code, text, errors = run_cli("plan", "s.json", "--policy", policy, "--json")
    assert (code, errors) == (0, "")
    return json.loads(text)


def test_plan_takes_jobs_of_unknown_length_and_says_what_it_believes(run_cli, tmp_path):
    decision = plan(run_cli, tmp_path, job(), job("b", duration_s=50))
    assert decision["plan"]["a"]["finish_s"] == 100 + 3600
    (name, believed), *others = decision["estimates"].items()
    assert (name, others) == ("a", [])
    assert (believed["mean_s"], believed["remaining_s"], believed["source"]) == (3600, 3600, "guess")
    assert believed["p10_s"] < 3600 < believed["p90_s"]
    assert "estimates" not in plan(run_cli, tmp_path, job("b", duration_s=50))


def test_what_a_job_had_so_far_counts(run_cli, tmp_path):
    """10,000 s with two GPUs: as much again."""
    (believed,) = plan(run_cli, tmp_path, job(attained_gpu_s=20_000))["estimates"].values()
    assert (believed["mean_s"], believed["remaining_s"]) == (20_000, 10_000)


def test_what_is_left_may_be_told(run_cli, tmp_path):
    (believed,) = plan(run_cli, tmp_path, job(attained_gpu_s=20_000, remaining_s=7))["estimates"].values()
    assert (believed["mean_s"], believed["remaining_s"], believed["source"]) == (10_007, 7, "told")


def test_the_table_shows_estimates_with_their_source(run_cli, tmp_path):
    (tmp_path / "s.json").write_text(snapshot(job("[a]")))
    code, text, _ = run_cli("plan", "s.json")
    assert code == 0
    assert "[a]: 3600 s of work (1897 to 5692), 3600 s left; source: guess" in text


@pytest.mark.parametrize("policy", ["srtf", "easy", "srtf+optimus"])
def test_plan_decides_as_the_run_did(run_cli, tmp_path, policy):
    options = [*INPUTS, "--unknown-durations", "--policy", policy, "--snapshot-at", "300", "s.json"]
    code, text, _ = run_cli("simulate", *options, "--json")
    assert (code, json.loads(text)["completed"]) == (0, 4)
    saved = json.loads((tmp_path / "s.json").read_text())
    assert saved["books"]["history"]
    assert all("duration_s" not in entry for entry in saved["jobs"])
    code, text, _ = run_cli("plan", "s.json", "--policy", policy, "--json")
    assert code == 0
    assert {it["source"] for it in json.loads(text)["estimates"].values()} <= {"history", "guess"}


@pytest.mark.parametrize("unknown", [[], ["--unknown-durations"]])
@pytest.mark.parametrize("more", [["simulate"], ["compare", "--policies", "fifo"]])
def test_a_simulation_needs_the_truth(run_cli, tmp_path, unknown, more):
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,2,\n")
    code, _, errors = run_cli(*more, *INPUTS, *unknown)
    assert code == 2
    assert "j.csv, line 2, field duration_s: duration_s and samples are both empty" in errors
    assert errors.count("\n") == 1


def test_compare_hides_it_too(run_cli):
    shown = [
        json.loads(run_cli("compare", *INPUTS, "--policies", "fifo,srtf", "--json", *more)[1])
        for more in ([], ["--unknown-durations"])
    ]
    assert [summary["completed"] for summary in shown[1]] == [4, 4]
    assert shown[0][0]["avg_jct_s"] == pytest.approx(shown[1][0]["avg_jct_s"])
    assert shown[0][1]["avg_jct_s"] < shown[1][1]["avg_jct_s"]


def test_nobody_learns_from_what_is_hidden(run_cli):
    code, _, errors = run_cli("simulate", *INPUTS, "--unknown-durations", "--learn-online", "d")
    assert code == 2
    assert "--learn-online learns from the work of jobs; leave out --unknown-durations" in errors
