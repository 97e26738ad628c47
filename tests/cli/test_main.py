"""The commands: what they print, what they write, and what their options do."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard import __version__
from trainyard.cli.main import run
from trainyard.policy.registry import ENTRIES, PRESETS

TRAINYARD = Path(sys.executable).with_name("trainyard")
SUMMARY = [
    "policy", "jobs", "completed", "avg_jct_s", "median_jct_s", "p95_jct_s", "p99_jct_s", "avg_queue_s",
    "makespan_s", "gpu_utilization", "restarts", "preemptions", "decisions", "decision_p50_ms",
    "decision_p99_ms", "wall_s", "finish_time_fairness_avg", "finish_time_fairness_max", "jain_index",
    "fallback_share", "rescues", "node_failures", "runs_lost", "outcomes", "tenants",
]  # fmt: skip
COLUMNS = (
    "job_id,arrival_s,start_s,finish_s,jct_s,queue_s,restarts,gpu_s,"
    "tenant,model,gpus,outcome,preemptions,user,priority"
)
CLUSTER = "name: lab\nnodes:\n  - {count: 1, gpus: 4}\n"
JOBS = "job_id,arrival_s,gpus,duration_s\nlong,0,4,100\nshort,10,4,20\n"
INPUTS = ["--cluster", "c.yaml", "--jobs", "j.csv"]
PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-03 05:00:00,60,2,120,vc1\n"
    "2017-10-03 04:00:00,30,1,30,vc2\n"
    "2017-10-03 06:00:00,30,0,0,vc2\n"
)
SNAPSHOT = {
    "now_s": 50,
    "cluster": {"nodes": [{"count": 1, "gpus": 4, "gpu_type": "V100"}]},
    "jobs": [
        {
            "job_id": "runs",
            "arrival_s": 0,
            "gpus": 3,
            "duration_s": 100,
            "allocation": {"V100-0": {"gpus": 3}},
        },
        {"job_id": "fits", "arrival_s": 5, "gpus": 1, "duration_s": 10},
        {"job_id": "waits", "arrival_s": 6, "gpus": 2, "duration_s": 10},
        {"job_id": "comes", "arrival_s": 51.5, "gpus": 1, "duration_s": 10},
    ],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    (tmp_path / "t.csv").write_text(PHILLY)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))
    return tmp_path


@pytest.fixture
def command(place, capfd, monkeypatch):
    """Run a command in this process and return what it printed on stdout and stderr."""

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, args)])
        run()
        return capfd.readouterr()

    return call


def process(*args, **more):
    return subprocess.run([TRAINYARD, *args], capture_output=True, text=True, check=False, **more)


def table(path):
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


def finishes(out="out"):
    return {row["job_id"]: float(row["finish_s"] or "nan") for row in table(Path(out, "jobs.csv"))}


def simulated(command, *options):
    command("simulate", *INPUTS, "--out", "out", *options)
    return finishes()


HEAVY = {"numpy", "scipy", "pydantic", "yaml", "matplotlib", "plotly", "torch", "multiprocessing"}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(option):
    done = process(option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"trainyard {__version__}\n" or "simulate" in done.stdout
    # Python's own list of imports; seconds would tell how busy the machine is.
    watched = process(option, env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}).stderr
    loaded = {line.rpartition("|")[2].strip() for line in watched.splitlines()}
    assert "trainyard.cli.main" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in HEAVY}


@pytest.mark.parametrize(
    "verb", ["", "simulate", "compare", "plan", "policies", "profile", "fit", "trace", "trace generate"]
)
def test_every_command_has_help(command, verb):
    out, err = command(*verb.split(), "--help")
    assert f"trainyard {verb}".strip() in out
    assert err == ""


def test_without_arguments_there_is_help(command):
    assert command().out == command("--help").out


def test_simulate_as_a_process(place):
    done = process("simulate", *INPUTS, "--policy", "srtf", "--json", "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert list(summary) == SUMMARY
    assert summary["policy"] == "srtf"
    assert summary["jobs"] == summary["completed"] == 2
    assert summary["avg_jct_s"] == pytest.approx((120 + 20) / 2)
    assert json.loads((place / "out/summary.json").read_text()) == summary
    assert sorted(p.name for p in (place / "out").iterdir()) == ["jobs.csv", "summary.json"]


def test_simulate_prints_a_table(command):
    out, err = command("simulate", *INPUTS)
    assert "fifo" in out
    assert "2 of 2" in out
    assert err == ""


def test_jobs_csv_has_the_columns_of_the_contract(command, place):
    command("simulate", *INPUTS, "--out", "out", "--json")
    assert (place / "out/jobs.csv").read_text() == (
        f"{COLUMNS}\nlong,0.0,0.0,100.0,100.0,0.0,0,400.0,,,4,done,0,,0\n"
        "short,10.0,100.0,120.0,110.0,90.0,0,80.0,,,4,done,0,,0\n"
    )


@pytest.mark.parametrize(
    ("options", "long", "short"),
    [
        ([], 100, 120),
        (["--policy", "srtf"], 120, 30),
        (["--policy", "srtf", "--restart-s", "5"], 125, 30),
        (["--start-s", "7"], 107, 134),
        (["--round-s", "60"], 100, 140),
        (["--failures", "f.csv"], 180, 200),
    ],
)
def test_what_options_do(command, place, options, long, short):
    (place / "f.csv").write_text("time_s,node,repair_s\n50,GPU-0,30\n")
    assert simulated(command, *options) == pytest.approx({"long": long, "short": short})


def test_until_leaves_empty_cells_and_null(command, place):
    out, _ = command("simulate", *INPUTS, "--out", "out", "--until-s", "50", "--json")
    summary = json.loads(out)
    assert list(summary) == SUMMARY
    assert summary["completed"] == 0
    assert summary["avg_jct_s"] is summary["jain_index"] is None
    assert (place / "out/jobs.csv").read_text().splitlines()[2] == "short,10.0,,,,,0,0.0,,,4,unfinished,0,,0"


def test_failures_at_random_follow_the_seed(command):
    calm = simulated(command)
    first = simulated(command, "--mtbf-h", "0.02", "--repair-h", "0.01", "--seed", "1")
    assert first == simulated(command, "--mtbf-h", "0.02", "--repair-h", "0.01", "--seed", "1")
    other = simulated(command, "--mtbf-h", "0.02", "--repair-h", "0.01", "--seed", "2")
    assert first["long"] > calm["long"]
    assert first != other


def test_the_same_seed_gives_the_same_bytes(command, place):
    command("trace", "generate", "j.csv", "--preset", "philly", "--jobs", 60, "--seed", 3)
    (place / "c.yaml").write_text("nodes: [{count: 20, gpus: 8}]\n")
    for out in ("one", "two"):
        command("simulate", *INPUTS, "--policy", "las+random", "--seed", 5, "--mtbf-h", 50, "--out", out)
    assert (place / "one/jobs.csv").read_bytes() == (place / "two/jobs.csv").read_bytes()


def test_profiles_and_json_lines(command, place):
    job = {"job_id": "a", "arrival_s": 0, "gpus": 2, "samples": 1000, "model": "mine"}
    (place / "j.csv").write_bytes(gzip.compress(json.dumps(job).encode()))
    (place / "p.yaml").write_text("mine: {batch: 10, scaling: weak, compute: {per_sample_s: {GPU: 0.1}}}\n")
    assert simulated(command, "--profiles", "p.yaml") == pytest.approx({"a": 50.0})


def test_an_existing_output_is_replaced(command, place):
    simulated(command)
    assert simulated(command, "--policy", "srtf") == {"long": 120, "short": 30}
    assert sorted(p.name for p in (place / "out").iterdir()) == ["jobs.csv", "summary.json"]


def test_progress_goes_to_a_terminal_and_leaves_stdout_alone(place):
    ours, theirs = os.openpty()
    args = [TRAINYARD, "simulate", *INPUTS, "--json"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=theirs, text=True) as running:
        out = running.stdout.read()
    shown = os.read(ours, 1000)
    os.close(theirs)
    os.close(ours)
    assert running.returncode == 0
    assert b"fifo" in shown
    assert list(json.loads(out)) == SUMMARY


def test_compare_writes_a_report(place):
    done = process(
        "compare", *INPUTS, "--policies", "fifo,srtf,las(threshold_gpu_s=40:80)", "--json", "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    summaries = json.loads(done.stdout)
    assert [list(summary) for summary in summaries] == [SUMMARY] * 3
    assert [s["policy"] for s in summaries] == ["fifo", "srtf", "las(threshold_gpu_s=40:80)"]
    assert done.stderr == "Report: out/report.html\n"
    out = place / "out"
    assert json.loads((out / "summary.json").read_text()) == summaries
    page = (out / "report.html").read_text()
    assert "<html" in page
    assert f"<dt>version</dt><dd>trainyard {__version__}</dd>" in page
    command = (
        "trainyard compare --cluster c.yaml --jobs j.csv --policies 'fifo,srtf,las(threshold_gpu_s=40:80)'"
    )
    assert f"<dt>command</dt><dd>{escape(command)} --json --out out</dd>" in page
    pngs = sorted(out.glob("*.png"))
    assert [png.name for png in pngs] == ["gantt.png", "jct_cdf.png", "queue.png", "utilization.png"]
    assert all(png.read_bytes().startswith(b"\x89PNG") for png in pngs)
    own = sorted(path.parent for path in out.glob("*/jobs.csv"))
    assert [directory.name[:7] for directory in own] == ["01-fifo", "02-srtf", "03-las_"]
    assert [finishes(directory)["short"] for directory in own[:2]] == [120, 30]


def test_compare_prints_a_table(place):
    done = process("compare", *INPUTS, "--policies", "fifo,srtf", env={**os.environ, "COLUMNS": "150"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "fifo" in done.stdout
    assert "srtf" in done.stdout
    assert not list(place.glob("out*"))


def test_plan_as_in_the_contract(command):
    out, err = command("plan", "s.json", "--policy", "fifo", "--json")
    answer = json.loads(out)
    assert (list(answer), err) == (["plan", "waiting", "decision_ms"], "")
    assert list(answer["plan"]) == ["runs", "fits"]
    assert list(answer["waiting"]) == ["waits", "comes"]
    assert answer["waiting"]["waits"]
    assert answer["waiting"]["comes"] == "arrives at 51.5 s"
    assert answer["plan"]["fits"] == {
        "workers": {"V100": 1},
        "servers": 0,
        "nodes": {"V100-0": {"gpus": 1, "servers": 0, "cpus": 3.0, "memory_gb": 62.5}},
        "samples_per_s": 1.0,
        "finish_s": 60.0,
    }


def test_plan_reads_standard_input(command, monkeypatch):
    text = json.dumps(SNAPSHOT).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    from_stdin = json.loads(command("plan", "-", "--json").out)
    from_file = json.loads(command("plan", "s.json", "--json").out)
    assert from_stdin | {"decision_ms": 0} == from_file | {"decision_ms": 0}


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_unused_columns_are_told_in_one_line(place, command, verb):
    header, *rows = JOBS.splitlines()
    lines = [f"{header},zz,priority,profile,", *(f"{row},1,2,," for row in rows)]
    (place / "j.csv").write_text("\n".join(lines))
    words = [verb, *INPUTS, *(["--policies", "fifo,srtf"] if verb == "compare" else []), "--json"]
    out, err = command(*words)
    assert json.loads(out)
    assert err == "note: j.csv: columns not used: profile, zz\n"


def test_unused_fields_are_told_in_one_line(place, command):
    jobs = [{"job_id": f"{i}", "arrival_s": 0, "gpus": 1, "duration_s": 9, f"x{i}": 1} for i in range(14)]
    (place / "j.csv").write_text("\n".join(map(json.dumps, [*jobs[:2], {**jobs[2], "a\nb": 1}])))
    assert command("simulate", *INPUTS).err == "note: j.csv: fields not used: 'a\\nb', x0, x1, x2\n"
    jobs[3] |= {"attained_gpu_s": 5, "remaining_s": 3, "weight": 2}
    (place / "s.json").write_text(json.dumps(SNAPSHOT | {"jobs": jobs}))
    names = ", ".join(sorted(f"x{i}" for i in range(14))[:12])
    assert command("plan", "s.json").err == f"note: s.json: fields not used: {names}, ...\n"


def test_plan_as_a_process(place):
    done = process("plan", "-", "--json", input=json.dumps(SNAPSHOT))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(json.loads(done.stdout)["plan"]) == ["runs", "fits"]


def test_plan_prints_a_table(command):
    out, _ = command("plan", "s.json")
    assert "V100-0 x1" in out
    assert "waits" in out
    assert "arrives at 51.5 s" in out


def test_policies_lists_every_name(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out, _ = command("policies")
    assert all(name in out for name in (*ENTRIES, *PRESETS))
    assert all(entry.line in out for entry in ENTRIES.values())
    listed = json.loads(command("policies", "--json").out)
    assert [entry["name"] for entry in listed] == [*ENTRIES, *PRESETS]


def test_trace_convert(command):
    out, err = command("trace", "convert", "t.csv", "jobs.csv")
    assert out == ""
    assert err.startswith("philly-vc: 2 jobs written to jobs.csv\n")
    assert "1 of 3 rows left out: no GPUs" in err
    rows = table("jobs.csv")
    assert [(r["arrival_s"], r["gpus"], r["duration_s"], r["tenant"]) for r in rows] == [
        ("0.0", "1", "30.0", "vc2"),
        ("3600.0", "2", "60.0", "vc1"),
    ]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl", "x.jsonl.gz"])
def test_converted_traces_can_be_simulated(command, name):
    command("trace", "convert", "--format", "philly-vc", "t.csv", name)
    summary = json.loads(command("simulate", "--cluster", "c.yaml", "--jobs", name, "--json").out)
    assert summary["completed"] == 2


def test_trace_generate(command, place):
    for name, seed in (("a.csv.gz", 1), ("b.csv.gz", 1), ("c.csv.gz", 2)):
        out, err = command("trace", "generate", "--preset", "philly", "--jobs", 50, "--seed", seed, name)
        assert out == ""
        assert err.startswith(f"philly: 50 jobs written to {name}\n")
    a, b, c = ((place / f"{name}.csv.gz").read_bytes() for name in "abc")
    assert a == b != c
    plain = [
        "--rate-per-h",
        60,
        "--gpus",
        "1:0.5,2:0.5",
        "--duration-s",
        600,
        "--models",
        "resnet50:2,lstm:1",
    ]
    command("trace", "generate", "--preset", "poisson", "--jobs", 40, *plain, "p.csv")
    rows = table("p.csv")
    assert len(rows) == 40
    assert {row["gpus"] for row in rows} == {"1", "2"}
    assert {row["model"] for row in rows} == {"resnet50", "lstm"}


def test_trace_stats(command, place):
    out, err = command("trace", "stats", "t.csv", "--json", "--plot", "t.png")
    found = json.loads(out)
    assert (found["format"], found["jobs"]) == ("philly-vc", 2)
    assert "plots written to t.png" in err
    assert (place / "t.png").read_bytes().startswith(b"\x89PNG")
    out, _ = command("trace", "stats", "j.csv")
    assert "j.csv (jobs)" in out
    assert "offered load" in out


def test_a_reader_that_goes_away_is_no_crash():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([TRAINYARD, "policies"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_crash():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [TRAINYARD, "policies"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr
