"""The data of the interactive plots of two small runs, number by number."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.report import palette
from trainyard.report.html import render_report
from trainyard.report.payload import payload, significant


def job(name, at, gpus, run_s, tenant=""):
    return Job(name, float(at), gpus, float(run_s), tenant=tenant)


JOBS = [job("a", 100, 8, 100, "x"), job("b", 110, 4, 10, "y"), job("c", 110, 4, 50, "y")]


@pytest.fixture(scope="module")
def results():
    return [checked(uniform_cluster(1), JOBS, policy) for policy in ("fifo", "srtf")]


@pytest.fixture(scope="module")
def data(results):
    return payload(results)


@pytest.mark.parametrize(
    ("value", "digits", "rounded"),
    [(123_456.0, 5, 123_460.0), (0.0123456, 3, 0.0123), (-2.0, 5, -2.0), (0.0, 5, 0.0)],
)
def test_digits_that_matter_are_kept(value, digits, rounded):
    assert significant([value], digits) == [rounded]


def test_what_is_no_number_is_none():
    assert significant(np.array([math.nan, math.inf, 1.0])) == [None, None, 1.0]


def test_times_are_in_the_unit_of_the_whole_run(data):
    assert data["unit"] == {"name": "seconds", "seconds": 1.0}  # from 100 s to 250 s
    assert data["ticks"][0] == [0.1, "0.1 s"]


def test_policies_have_their_names_colours_and_distributions(data):
    fifo, srtf = data["policies"]
    assert [(p["name"], p["colour"], p["dash"]) for p in (fifo, srtf)] == [
        ("fifo", 0, "solid"),
        ("srtf", 1, "solid"),
    ]
    assert fifo["jct"] == {"x": [100, 140], "y": [0.66667, 1]}
    assert srtf["jct"]["x"] == [10, 50, 150]
    assert srtf["jct"]["y"] == [0.33333, 0.66667, 1]


def test_slowdown_is_over_the_run_time_alone(data):
    fifo, srtf = data["policies"]
    assert fifo["slowdown"]["x"] == [1, 2.8, 10]
    assert srtf["slowdown"]["x"] == [1, 1.5]


def test_the_last_level_is_drawn_to_its_end(data):
    queue = data["policies"][0]["queue"]
    assert queue["t"][-1] == 250
    assert queue["v"][-1] == queue["v"][-2] == 0
    assert 2 in queue["v"]


def test_boxes_are_by_gpus_and_by_length(data):
    gpus, length = data["classes"]["gpus"], data["classes"]["length"]
    assert gpus["labels"] == ["4 GPUs<br>2 jobs", "8 GPUs<br>1 jobs"]
    assert gpus["boxes"][1][0][0] == 2
    assert gpus["boxes"][1][1] == [1, 150, 150, 150, 150, 150, 150]
    assert length["labels"] == ["10.0 s<br>1 jobs", "50.0 s<br>1 jobs", "1.67 min<br>1 jobs"]


def test_bars_point_to_their_jobs(data):
    chart = data["gantt"]
    assert chart["bands"] == [["GPU-0", 0, 8]]
    assert (chart["top"], chart["window"]) == (8, [100, 250])
    assert chart["jobs"] == [["a", 0, 8, 0], ["b", 1, 4, 1], ["c", 2, 4, 1]]
    srtf = chart["bars"][1]
    drawn = [[chart["jobs"][i][0] for i in srtf["job"]], srtf["start"], srtf["end"], srtf["lanes"]]
    assert drawn == [["a", "b", "c", "a"], [100, 110, 110, 160], [110, 120, 160, 250], [8, 4, 4, 8]]


def test_tenants_are_numbered_by_gpu_time(data):
    # x holds 8 GPUs for 100 s, y 4 for 10 s and 4 for 50 s.
    assert data["gantt"]["tenants"] == ["x", "y"]
    assert [entry[3] for entry in data["gantt"]["jobs"]] == [0, 1, 1]


def test_small_tenants_share_a_colour():
    jobs = [job(f"j{i}", i, 1, 10 + i, f"t{i}") for i in range(10)] + [job("nobody", 0, 1, 500)]
    chart = payload([checked(uniform_cluster(2), jobs)])["gantt"]
    assert chart["tenants"] == [f"t{i}" for i in range(9, 1, -1)]
    assert len(chart["tenants"]) == len(palette.FILLS)
    assert {entry[0]: entry[3] for entry in chart["jobs"]} == {
        **{f"j{i}": 9 - i for i in range(2, 10)},
        **{"j0": -1, "j1": -1, "nobody": -1},
    }


def test_names_up_to_the_limit_stay_whole():
    names = ["x" * 64, "a" * 40 + "b" * 40]
    jobs = [job(name, 0, 1, 5) for name in names]
    shown = {entry[0] for entry in payload([checked(uniform_cluster(1), jobs)])["gantt"]["jobs"]}
    assert shown == {names[0], "a" * 32 + "…" + "b" * 31}


def test_a_job_done_at_once_has_its_place_on_the_axis():
    data = payload([checked(uniform_cluster(1), [job("a", 0, 1, 0.01)])])
    assert data["policies"][0]["jct"]["x"] == [0.1]


def test_the_payload_is_strict_json(data):
    assert json.loads(json.dumps(data, allow_nan=False))["gantt"]["caption"].startswith("Shown: all nodes")


def test_the_page_marks_the_best_of_each_measure(results):
    page = render_report(results, "T", {})
    rows = [line for line in page.splitlines() if line.startswith("<tr><th scope") and "swatch" in line]
    assert len(rows) == 2
    fifo, srtf = ([cell.split("</td>")[0] for cell in row.split("<td ")[1:]] for row in rows)
    assert fifo[0] == 'data-value="113.33333333333333">1.89 min'
    assert srtf[0].startswith('data-value="70.0" class="best">')


def test_styles_repeat_only_after_all_have_been_used():
    assert palette.policy_style(7) == (7, "solid")
    assert palette.policy_style(8) == (0, "dash")
    assert palette.policy_style(31) == (7, "dashdot")
    assert palette.policy_style(32) == (0, "solid")
    assert len(palette.POLICY_LIGHT) == len(palette.POLICY_DARK)
