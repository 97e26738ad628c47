"""`ps`, `show` and `story` against a real controller, and how jobs are named."""

from __future__ import annotations

import json

import pytest

from controller_cases import UNTIL, Commands, controlled, until
from trainyard.cli.shown.job import HEADINGS

OBJECT = [
    "job_id", "name", "tenant", "state", "attempt", "gpus", "servers", "nodes", "submitted_s", "started_s",
    "finished_s", "samples_done", "samples_total", "samples_per_s", "exit_code", "exit_signal", "reason",
    "reason_code", "retries_used", "restarts",
]  # fmt: skip


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    """A controller with a job that is done, one that failed, one that runs and one that waits."""
    for made in controlled(tmp_path_factory.mktemp("yard")):
        for words in (
            ["--name", "early", "--", "true"],
            ["--name", "broken", "--", "sh", "-c", "echo 'no \033[31mdata'; exit 3"],
            ["--name", "resnet", "--gpus", "4", "--", "sh", "-c", UNTIL.format("stop")],
            ["--name", "resnet-big", "--gpus", "4", "--env", "A=b", "--time-limit", "2h", "--", "true"],
        ):
            assert made.run("submit", *words).returncode == 0
            made.reaches(len(made.jobs()), "done", "failed", "running", "waiting")
            if words[1] in ("early", "broken", "resnet"):
                made.reaches(len(made.jobs()), "done", "failed", "running")
        yield made


@pytest.fixture
def run(yard, monkeypatch, capsys):
    return Commands(yard, monkeypatch, capsys)


def cells(line):
    return [cell for cell in line.split("  ") if cell]


def test_ps_is_a_line_for_each_job(run):
    heading, *jobs = run.out("ps").splitlines()
    assert heading.split() == list(HEADINGS)
    assert [line.split()[:2] for line in jobs] == [
        ["1", "early"], ["2", "broken"], ["3", "resnet"], ["4", "resnet-big"],
    ]  # fmt: skip
    assert [line.split()[4] for line in jobs] == ["done", "failed", "running", "waiting"]
    assert jobs[2].split()[5:7] == ["4/4", "V100-0,V100-1"]
    assert jobs[3].split()[5:8] == ["-/4", "-", "-"]
    assert "rank 0 on V100-0 exited with 3" in jobs[1]
    assert "\x1b" not in jobs[1]


def test_ps_is_cut_to_the_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    lines = run.out("ps").splitlines()
    assert len(lines) == 5
    assert max(len(line) for line in lines) <= 90
    assert lines[2].endswith("..")


def test_ps_as_json_is_a_list_of_job_objects(run):
    jobs = run.json("ps", "--json")
    assert [job["job_id"] for job in jobs] == ["1", "2", "3", "4"]
    assert all(set(OBJECT) <= set(job) for job in jobs)
    running = jobs[2]
    assert (running["attempt"], running["gpus"], running["servers"]) == (1, 4, 0)
    assert {node: held["gpus"] for node, held in running["nodes"].items()} == {
        "V100-0": [0, 1],
        "V100-1": [0, 1],
    }
    assert (jobs[1]["exit_code"], jobs[1]["reason_code"]) == (3, "exit")


def test_ps_by_state_and_all(run):
    assert [job["name"] for job in run.json("ps", "--state", "waiting", "--json")] == ["resnet-big"]
    assert {job["job_id"] for job in run.json("ps", "-a", "--json")} == {"1", "2", "3", "4"}
    assert run.error("ps", "--state", "runing") == (
        2,
        "--state 'runing': there is no such state; did you mean 'running'?",
    )


def test_ps_asks_for_every_page(yard, run, monkeypatch):
    from trainyard.cli.client.link import Link

    pages = []
    get = Link.get

    def small(self, path, **query):
        answer = get(self, path, **query | ({"limit": 1} if path == "/jobs" else {}))
        pages.append(path)
        return answer

    monkeypatch.setattr(Link, "get", small)
    for option in ([], ["-a"]):
        assert len(run.json("ps", *option, "--json")) == 4
    assert pages == ["/jobs"] * 8


def test_show_a_job_that_runs(yard, run):
    first, *rest = run.out("show", "resnet").splitlines()
    assert first.startswith("3 resnet: running since ")
    assert first.endswith(" with 4 GPUs (V100 x2 on V100-0, V100 x2 on V100-1), attempt 1 of this job")
    assert f"in {yard.folder}" in rest
    assert f"command: sh -c '{UNTIL.format('stop')}'" in rest


def test_show_a_job_that_waits(run):
    first, *rest = run.out("show", "4").splitlines()
    assert first.startswith("4 resnet-big: waiting since ")
    assert first.endswith(", wants 4 GPUs")
    assert "limits: 2 h running time (0 s used)" in rest


def test_show_a_job_that_failed(run):
    first, second, *_ = run.out("show", "broken").splitlines()
    assert first.startswith("2 broken: failed at ")
    assert first.endswith(", attempt 1 of this job, exit code 3")
    assert second.startswith("reason: rank 0 on V100-0 exited with 3 after ")
    assert "last line: no data; logs 2 (exit)" in second


def test_show_as_json_has_the_attempts(run):
    job = run.json("show", "broken", "--json")
    assert set(OBJECT) <= set(job)
    (attempt,) = job["attempts"]
    assert (attempt["attempt"], attempt["exit_code"], list(attempt["nodes"])) == (1, 3, ["V100-0"])


def test_the_story(run):
    lines = run.out("story", "early").splitlines()
    times, texts = zip(*(line.split("  ", 1) for line in lines), strict=True)
    assert list(times) == sorted(times)
    assert texts[0].startswith("submitted by ")
    assert "attempt 1 started, 1 GPU on V100-0" in texts
    assert texts[-1].startswith("done")
    told = run.json("story", "early", "--json")
    assert [entry["text"] for entry in told] == list(texts)
    assert told[-1]["state"] == "done"


@pytest.mark.parametrize(
    ("name", "job_id"), [("3", "3"), ("resnet", "3"), ("resnet-", "4"), ("-", "4"), ("ear", "1")]
)
def test_jobs_are_named_by_id_name_and_beginning(run, name, job_id):
    assert run.json("show", "--json", "--", name)["job_id"] == job_id


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("res", "'res' fits 2 jobs: 3 resnet, 4 resnet-big; give the id"),
        ("nobody", "no job is called 'nobody'; trainyard ps -a shows all"),
        ("77", "there is no job 77; trainyard ps -a shows all"),
        ("../status", "no job is called '../status'; trainyard ps -a shows all"),
        ("a b?c=ü", "no job is called 'a b?c=ü'; trainyard ps -a shows all"),
    ],
)
@pytest.mark.parametrize("verb", ["show", "story", "logs", "cancel", "hold", "release", "wait"])
def test_a_name_that_fits_no_job_or_several(run, verb, name, wrong):
    assert run.error(verb, name) == (2, wrong)


def test_the_error_of_a_name_as_json(run):
    code, out, _ = run("show", "nobody", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "not_found"


def test_progress_is_shown(yard, run):
    until(lambda: yard.job("3")["state"] == "running")
    script = (
        "import json, os, time; path = os.environ['TRAINYARD_PROGRESS']; "
        "json.dump({'samples_done': 250, 'samples_total': 1000}, open(path + '.new', 'w')); "
        "os.rename(path + '.new', path); time.sleep(600)"
    )
    run.out("hold", "resnet")
    job = run.json("submit", "--name", "tells", "--json", "--", "python3", "-c", script)
    until(lambda: yard.job(job["job_id"])["samples_done"], "a report")
    assert run.out("ps", "--state", "running").splitlines()[1].split()[-1] == "25%"
    assert any(line.startswith("25% of 1,000 samples") for line in run.out("show", "tells").splitlines())
