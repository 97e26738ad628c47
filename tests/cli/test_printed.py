"""What commands print and write: strict JSON, one line for each job, names of directories."""

from __future__ import annotations

import json
import math
import sys

import pytest

from conftest import checked
from trainyard.cli import output
from trainyard.cli.output import jobs_csv, progress_bars, require_plots, write_comparison, write_run
from trainyard.cli.shown.as_json import to_json
from trainyard.cli.study.fit import _flat, _stem
from trainyard.cli.study.plan import _place, _said
from trainyard.errors import InputError
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job

OTHER = Job("b,c", 10.0, 8, 20.0, model="m", tenant="x,y", status="failed", user="ann", priority=-3)
JOBS = [Job("a", 0.0, 8, 100.0), OTHER]


def run(policy="fifo", **options):
    return checked(uniform_cluster(1), JOBS, policy, **options)


def test_numbers_that_are_not_finite_become_null():
    data = {"x": math.nan, "y": [1.0, -math.inf, (math.inf, 2)], "z": {"n": "nan"}, "w": None}
    assert json.loads(to_json(data)) == {
        "x": None,
        "y": [1.0, None, [None, 2]],
        "z": {"n": "nan"},
        "w": None,
    }


def test_one_line_for_each_job():
    assert jobs_csv(run()) == (
        "job_id,arrival_s,start_s,finish_s,jct_s,queue_s,restarts,gpu_s,"
        "tenant,model,gpus,outcome,preemptions,user,priority\n"
        "a,0.0,0.0,100.0,100.0,0.0,0,800.0,,,8,done,0,,0\n"
        '"b,c",10.0,100.0,120.0,110.0,90.0,0,160.0,"x,y",m,8,failed,0,ann,-3\n'
    )


def test_what_never_happened_is_empty():
    lines = jobs_csv(run(until_s=50.0)).splitlines()
    assert lines[1:] == [
        "a,0.0,0.0,,,0.0,0,400.0,,,8,unfinished,0,,0",
        '"b,c",10.0,,,,,0,0.0,"x,y",m,8,unfinished,0,ann,-3',
    ]


def test_a_run_is_two_files(tmp_path):
    result = run()
    write_run(tmp_path, result)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "summary.json"]
    assert (tmp_path / "jobs.csv").read_text() == jobs_csv(result)
    assert json.loads((tmp_path / "summary.json").read_text())["avg_jct_s"] == 105


def test_runs_of_a_comparison_are_numbered(tmp_path):
    results = [run(), run("las(threshold_gpu_s=40:80)")]
    report = write_comparison(tmp_path, results, {"--seed": "7", "command": "trainyard compare"})
    assert report == tmp_path / "report.html"
    assert "<dt>--seed</dt><dd>7</dd>" in report.read_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "01-fifo",
        "02-las_threshold_gpu_s=40_80",
    ]
    assert [s["policy"] for s in json.loads((tmp_path / "summary.json").read_text())] == [
        "fifo",
        "las(threshold_gpu_s=40:80)",
    ]


@pytest.mark.parametrize("missing", ["matplotlib", "plotly"])
def test_a_missing_library_is_named_before_the_run(monkeypatch, missing):
    require_plots()
    monkeypatch.setattr(output, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(InputError, match=f"^--out: the report needs {missing}; pip install"):
        require_plots()


def test_no_progress_where_nobody_looks(capsys):
    assert not sys.stderr.isatty()
    with progress_bars(["fifo"], 2) as bars:
        bars(0, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        ({"gpus": 2, "servers": 0}, "n x2"),
        ({"gpus": 2, "servers": 1}, "n x2 + 1 server"),
        ({"gpus": 1, "servers": 2}, "n x1 + 2 servers"),
        ({"gpus": 0, "servers": 3}, "n + 3 servers"),
    ],
)
def test_what_a_job_has_on_a_node(share, said):
    assert _place("n", share) == said


def test_notes_of_a_plan_are_short():
    assert _said(0.123456) == "0.1235"
    assert _said(3) == "3"
    assert _said({"V100": 1.5, "P100": {"low": 2}}) == "V100 1.5, P100 low 2"


@pytest.mark.parametrize(
    ("path", "name"),
    [("-", "profile"), ("runs/resnet.csv.gz", "resnet"), ("bert", "bert"), (".csv", "profile")],
)
def test_a_profile_is_named_for_its_file(path, name):
    assert _stem(path) == name


def test_parts_of_a_profile_have_their_path():
    record = {"batch": 8, "compute": {"fixed_s": 0.5, "per_sample_s": {"V100": 1e-7}}, "scaling": "weak"}
    assert list(_flat(record)) == [
        ("batch", "8"),
        ("compute.fixed_s", "0.5"),
        ("compute.per_sample_s.V100", "1e-07"),
        ("scaling", "weak"),
    ]
