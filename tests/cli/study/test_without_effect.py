"""Names that match nothing are told in a note; options that could have no effect are refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conftest import command

CLUSTER = """\
gpu_types: {V10: {speed: 2}}
nodes: [{count: 2, gpus: 4, gpu_type: V100}]
tenants: {vision: {guaranteed: 4}, speech: {}}
reservations: [{nodes: [V100-0], from_s: 300, to_s: 700, tenant: speach}]
"""
JOBS = "job_id,arrival_s,gpus,duration_s,tenant\na,0,1,100,vison\nb,5,4,50,vision\nc,5,1,5,ops\nd,5,1,5,\n"
INPUTS = ["--cluster", "c.yaml", "--jobs", "j.csv"]
TRAIN = ["train", "dl2", "--out", "w.safetensors", "--setting", "testbed"]
TOLD = [
    "note: {cluster}: no node has GPUs of type 'V10'; did you mean 'V100'?",
    "note: {cluster}: reservation 'r1' is for tenant 'speach', which has no job; did you mean 'speech'?",
    "note: {jobs}: tenants that the cluster does not list have no guarantee and no limit: "
    "'ops' (1 job), 'vison' (1 job; did you mean 'vision'?)",
]


@pytest.fixture
def run_cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    return lambda *words: command(monkeypatch, capsys, *words)


@pytest.mark.parametrize("words", [["simulate"], ["compare", "--policies", "fifo"]])
def test_misspelt_names_are_told(run_cli, words):
    code, out, errors = run_cli(*words, *INPUTS, "--json")
    assert code == 0
    assert json.loads(out)
    assert errors.splitlines() == [line.format(cluster="c.yaml", jobs="j.csv") for line in TOLD]


def test_plan_tells_them_too(run_cli, tmp_path):
    cluster = {
        "gpu_types": {"V10": {}},
        "nodes": [{"count": 2, "gpus": 4, "gpu_type": "V100"}],
        "tenants": {"vision": {}, "speech": {}},
        "reservations": [{"nodes": ["V100-0"], "from_s": 1, "to_s": 2, "tenant": "speach"}],
    }
    jobs = [{"job_id": t, "arrival_s": 0, "gpus": 1, "tenant": t} for t in ("ops", "vison", "vision")]
    (tmp_path / "s.json").write_text(json.dumps({"now_s": 0, "cluster": cluster, "jobs": jobs}))
    assert run_cli("plan", "s.json")[2].splitlines() == [
        line.format(cluster="s.json", jobs="s.json") for line in TOLD
    ]


def test_who_lists_no_tenants_is_told_nothing(run_cli, tmp_path):
    (tmp_path / "c.yaml").write_text("nodes: [{count: 2, gpus: 4}]\n")
    assert run_cli("simulate", *INPUTS)[2] == ""


def test_profiles_that_no_job_names_are_told(run_cli, tmp_path):
    (tmp_path / "c.yaml").write_text("nodes: [{count: 2, gpus: 4}]\n")
    (tmp_path / "p.yaml").write_text("mine: {batch: 8}\nresnet50: {batch: 4}\n")
    unused = "note: --profiles p.yaml: it is not used, no job names a model of it\n"
    assert run_cli("simulate", *INPUTS, "--profiles", "p.yaml")[2] == unused
    for model, told in (("mine", ""), ("resnet50", ""), ("lstm", unused)):
        (tmp_path / "j.csv").write_text(f"job_id,arrival_s,gpus,duration_s,model\na,0,1,100,{model}\n")
        assert run_cli("simulate", *INPUTS, "--profiles", "p.yaml")[2] == told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", *INPUTS, "--repair-h", "2"], "--repair-h goes with --mtbf-h"),
        (["simulate", *INPUTS, "--policy", "srtf(half_life_s=60)"], "half_life_s goes with fairshare"),
        (["evaluate", "--setting", "testbed", "--slot-s", "60"], "--slot-s goes with --jobs"),
        (["evaluate", "--setting", "testbed", "--profiles", "p.yaml"], "--profiles goes with --jobs"),
        (["evaluate", "--setting", "testbed", "--episode-jobs", "9"], "--episode-jobs goes with --jobs"),
        (
            [*TRAIN, "--teacher", "none", "--decisions", "9"],
            "--decisions are those of a teacher",
        ),
        (["fit", "s.csv", "--storage-mbps", "100"], "--storage-mbps goes with --dataset-gb"),
    ],
)
def test_an_option_that_could_have_no_effect_is_refused(run_cli, words, said):
    code, out, error = run_cli(*words)
    assert (code, out) == (2, "")
    assert error.startswith("trainyard: error: ")
    assert said in error
    assert error.count("\n") == 1


def test_a_repair_time_of_its_own_is_used(run_cli, tmp_path):
    (tmp_path / "c.yaml").write_text("nodes: [{count: 2, gpus: 4}]\n")
    ends = {}
    for repair in ((), ("--repair-h", "1"), ("--repair-h", "9")):
        _, out, _ = run_cli("simulate", *INPUTS, "--mtbf-h", "0.01", *repair, "--json")
        ends[repair] = json.loads(out)["makespan_s"]
    assert ends[()] == ends["--repair-h", "1"] < ends["--repair-h", "9"]


def test_the_package_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("trainyard ")
    assert (
        subprocess.run(
            [sys.executable, "-m", "trainyard", "nope"], capture_output=True, check=False
        ).returncode
        == 2
    )
