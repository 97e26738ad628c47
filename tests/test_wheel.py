"""The wheel, as people install it: it has all it needs, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from trainyard import __version__

ROOT = Path(__file__).resolve().parents[1]
ABOUT = f"trainyard-{__version__}.dist-info"
JOBS = "job_id,arrival_s,gpus,duration_s,model,min_gpus,max_gpus\na,0,4,1000,resnet50,1,8\nb,10,2,500,,,\n"
SNAPSHOT = {
    "now_s": 50,
    "cluster": {"nodes": [{"count": 1, "gpus": 4, "gpu_type": "V100"}]},
    "jobs": [{"job_id": "a", "arrival_s": 0, "gpus": 3, "samples": 1e6, "model": "gnmt"}],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel as `make dist` does."""
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Make an empty environment, install the wheel with its plots, and return the interpreter."""
    home = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    link(PathDistribution(ZipPath(wheel) / ABOUT).requires, "plots", site)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    checked = subprocess.run([*pip, "check"], check=False, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "No broken requirements found.\n")
    return python


def link(requires, extra, site):
    """Link what is required, and what that requires, to what is installed here: no download, nothing else."""
    for text in requires or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        found = distribution(wanted.name)
        tops = {file.parts[0] for file in found.files} - {"..", "__pycache__"}
        if not all((site / top).exists() for top in tops):
            for top in tops:
                (site / top).symlink_to(found.locate_file(top))
            link(found.requires, "", site)


@pytest.fixture
def call(python, tmp_path):
    """Return a function that runs a command of the environment in an empty directory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(command, *args):
        options = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True, "check": False}
        done = subprocess.run([python.with_name(command), *args], **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_it_holds_the_package_and_nothing_else(wheel):
    source = ROOT / "src"
    package = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    names = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    about = {f"{ABOUT}/{name}" for name in names}
    held = set(ZipFile(wheel).namelist())
    assert held == {name for name in package if "__pycache__" not in name} | about


def test_it_has_all_it_needs(call, python, tmp_path):
    where = call("python", "-c", "import trainyard; print(trainyard.__file__)")
    assert Path(where).is_relative_to(python.parents[1])
    found = call("python", "-c", "from importlib.util import find_spec; print(find_spec('pytest'))")
    assert found == "None\n"  # nothing but what the wheel asks for is there

    (tmp_path / "cluster.yaml").write_text("nodes: [{count: 2, gpus: 4, gpu_type: V100}]\n")
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "now.json").write_text(json.dumps(SNAPSHOT))
    inputs = ["--cluster", "cluster.yaml", "--jobs", "jobs.csv"]

    for policy in ("dl2(weights=paper)", "dl2(weights=philly)", "market"):
        summary = json.loads(call("trainyard", "simulate", *inputs, "--policy", policy, "--json"))
        assert (summary["policy"], summary["completed"]) == (policy, 2)

    decision = json.loads(call("trainyard", "plan", "now.json", "--policy", "synergy", "--json"))
    assert decision["plan"]["a"]["workers"] == {"V100": 3}

    call("trainyard", "trace", "generate", "--preset", "philly", "--jobs", "5", "--seed", "1", "some.csv")
    call("trainyard", "compare", *inputs, "--policies", "fifo,srtf+drf", "--out", "out")
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "srtf+drf" in report
    assert "plotly" in report
    plots = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert plots >= {"gantt.png", "jct_cdf.png", "queue.png", "utilization.png"}
