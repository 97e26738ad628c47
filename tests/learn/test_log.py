"""Decision logs: written, read back, and refused with one clear line when they are wrong."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from conftest import complaint
from learn_cases import on_testbed, ring
from trainyard.learn.episode import Scenario
from trainyard.learn.lessons import lessons, watch
from trainyard.learn.log import read_log, write_log
from trainyard.learn.settings.paper_jobs import KINDS
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.features import Features

NAMES = Features(tuple(kind.model for kind in KINDS))


def plain(number):
    jobs = [Job(str(i), 50.0 * i, 1, 400.0 + i, min_gpus=1, max_gpus=4) for i in range(6)]
    return Scenario(uniform_cluster(1, 8), jobs, 100.0)


@pytest.mark.parametrize("scenario", [on_testbed, ring, plain])
@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_log_gives_the_same_lessons_as_the_run_itself(tmp_path, scenario, name):
    teacher = parse_policy("lookahead")
    path = tmp_path / name
    write_log(path, [scenario(0), scenario(1)], teacher)
    again = tmp_path / f"again-{name}"
    write_log(again, [scenario(0), scenario(1)], teacher)
    assert path.read_bytes() == again.read_bytes()
    told = list(lessons(read_log(path), 1, NAMES))
    seen = list(lessons((m for i in range(2) for m in watch(scenario(i), teacher)), 1, NAMES))
    assert len(told) == len(seen) > 5
    for ours, theirs in zip(told, seen, strict=True):
        np.testing.assert_array_equal(ours.actions, theirs.actions)
        np.testing.assert_array_equal(ours.mask[:, : theirs.mask.shape[1]], theirs.mask)
        np.testing.assert_allclose(ours.jobs, theirs.jobs, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours.cluster, theirs.cluster, rtol=1e-5)


CLUSTER = {"cluster": {"nodes": [{"count": 1, "gpus": 8}]}, "slot_s": 60}
JOB = {"job": {"job_id": "a", "arrival_s": 0, "gpus": 1, "duration_s": 600, "min_gpus": 1, "max_gpus": 8}}
DECISION = {"now_s": 0, "jobs": [{"job_id": "a", "workers": 3}]}


def read(tmp_path, *lines):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(read_log(path))


def test_the_least_that_a_scheduler_has_to_write_down(tmp_path):
    (moment,) = read(tmp_path, CLUSTER, JOB, DECISION)
    assert moment.shapes.gpus.tolist() == [3]
    assert [lesson.actions.tolist() for lesson in lessons([moment])] == [[1], [1], [0]]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([JOB], "line 1: the first line must have the cluster and slot_s"),
        ([{"cluster": CLUSTER["cluster"]}], "line 1: slot_s is missing"),
        ([CLUSTER, DECISION], "line 2, field jobs[0].job_id: job 'a' has no line of its own before this one"),
        ([CLUSTER, JOB, JOB], "line 3, field job.job_id: 'a' is already the id of the job in"),
        (
            [CLUSTER, JOB, {"now_s": 0, "jobs": DECISION["jobs"] * 2}],
            "line 3, field jobs[1].job_id: job 'a' is there twice",
        ),
        (
            [CLUSTER, JOB, {"now_s": 0}],
            "line 3: a line must have cluster and slot_s, or job, or now_s and jobs",
        ),
        (
            [CLUSTER, JOB, {"now_s": 0, "jobs": [{"job_id": "a"}]}],
            "line 3, field jobs[0].workers: is missing",
        ),
        ([CLUSTER, JOB, {"now_s": 0, "job_s": []}], "unknown key 'job_s'; did you mean 'jobs'?"),
        (
            [CLUSTER, JOB, {"now_s": 0, "jobs": [{"job_id": "a", "workers": 1, "remaining_s": 700}]}],
            "700 is more than the job's duration_s",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, lines, said):
    assert said in complaint(read, tmp_path, *lines)


def test_a_compressed_log_is_text_inside(tmp_path):
    write_log(tmp_path / "l.jsonl.gz", [plain(0)], parse_policy("drf"))
    first = json.loads(gzip.decompress((tmp_path / "l.jsonl.gz").read_bytes()).splitlines()[0])
    assert first["slot_s"] == 100.0
    assert first["cluster"]["nodes"][0]["gpus"] == 8
