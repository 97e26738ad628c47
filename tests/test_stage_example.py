"""The example package of `examples/stage`: installed, its stage is a name like any other."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "stage"
TRAINYARD = Path(sys.executable).with_name("trainyard")
CLUSTER = "nodes: [{count: 1, gpus: 4}]\n"
JOBS = "job_id,arrival_s,gpus,duration_s,weight\nlong,0,4,1000,1\nurgent,10,4,1000,5\nlate,20,4,10,1\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the package into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
    install = [sys.executable, "-m", "pip", "install", *options, "--target", target, EXAMPLE]
    subprocess.run(install, check=True, capture_output=True)
    return target


@pytest.fixture
def trainyard(site, tmp_path):
    """Return a function that runs a command with the package installed."""
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}

    def call(*args, cwd=tmp_path):
        options = {"cwd": cwd, "env": env, "capture_output": True, "text": True, "check": False}
        return subprocess.run([TRAINYARD, *args], **options)

    return call


def test_policies_lists_it_with_its_package(trainyard):
    listed = json.loads(trainyard("policies", "--json").stdout)
    assert listed[-1] == {
        "name": "hurry",
        "stages": ["order"],
        "package": "trainyard-hurry",
        "line": "Most weight per GPU-second left first; after patience_s of waiting a job counts twice",
    }
    assert "(package trainyard-hurry)" in trainyard("policies").stdout


def test_it_runs_by_name(trainyard, tmp_path):
    inputs = ["--cluster", "c.yaml", "--jobs", "j.csv"]
    done = trainyard("simulate", *inputs, "--policy", "hurry+spread", "--json", "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["policy"] == "hurry+spread"
    rows = (tmp_path / "out" / "jobs.csv").read_text().splitlines()[1:]
    finish = {row.split(",")[0]: float(row.split(",")[3]) for row in rows}
    assert finish == {"urgent": 1020.0, "late": 30.0, "long": 2010.0}
    done = trainyard("compare", *inputs, "--policies", "srtf,hurry,hurry(patience_s=5)", "--json")
    assert [one["completed"] for one in json.loads(done.stdout)] == [3, 3, 3]


def test_its_errors_are_ours(trainyard):
    done = trainyard("simulate", "--cluster", "c.yaml", "--jobs", "j.csv", "--policy", "hurry(patience_s=0)")
    assert done.returncode == 2
    assert done.stderr == (
        "trainyard: error: policy 'hurry(patience_s=0)', stage hurry: patience_s is 0; give seconds above 0\n"
    )


def test_the_commands_of_its_page_run(trainyard):
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [
        shlex.split(line, comments=True)[1:] for line in page.splitlines() if "    trainyard " in line
    ]
    assert [words[0] for words in commands] == ["policies", "simulate"]
    for words in commands:
        done = trainyard(*words, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
        assert "hurry" in done.stdout


def test_the_page_shows_the_package():
    page = (ROOT / "docs" / "stages.md").read_text(encoding="utf-8")
    stage = (EXAMPLE / "trainyard_hurry.py").read_text(encoding="utf-8")
    assert stage[stage.index("class Hurry") :].strip() in page
    (points,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert points in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
