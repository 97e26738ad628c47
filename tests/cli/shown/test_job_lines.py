"""Jobs as `ps` and `show` describe them."""

from __future__ import annotations

import pytest

from trainyard.cli.shown import job as said
from trainyard.cli.shown.times import clock

NOW = 1_700_000_000.0
JOB = {
    "job_id": "17", "name": "resnet", "user": "ann", "tenant": "vision", "state": "running", "attempt": 3,
    "gpus": 4, "servers": 0, "min_gpus": 1, "max_gpus": 8, "gpu_type": "",
    "nodes": {"gpu1": {"gpus": [0, 1, 2, 3]}},
    "submitted_s": NOW - 9000, "started_s": NOW - 4320, "finished_s": None, "run_s": 4320.0, "retries": 2,
    "retries_used": 0, "samples_done": 756_000.0, "samples_total": 1.2e6, "samples_per_s": 1950.0,
    "exit_code": None, "exit_signal": None, "reason": "gpu1 was lost", "reason_code": "node_lost",
    "command": ["python", "train.py", "--lr", "0.1 x"], "after": [], "time_limit_s": None, "grace_s": None,
}  # fmt: skip
WAITS = JOB | {
    "state": "waiting", "attempt": 0, "gpus": 0, "nodes": {}, "started_s": None, "run_s": 0.0,
    "samples_done": None, "samples_per_s": None, "reason": "", "reason_code": "",
}  # fmt: skip
OVER = JOB | {"state": "failed", "gpus": 0, "nodes": {}, "finished_s": NOW, "exit_code": 3}


def test_a_job_that_runs():
    assert said.row(JOB) == [
        "17", "resnet", "ann", "vision", "running", "4/8", "gpu1", "1:12h", "3m", "63%", "",
    ]  # fmt: skip
    assert said.headline(JOB, {"gpu1": "V100"}, NOW) == (
        f"17 resnet: running since {clock(NOW - 4320, NOW)} with 4 GPUs (V100 x4 on gpu1), "
        "attempt 3 of this job, retries used 0 of 2"
    )
    left = (1.2e6 - 756_000) / 1950
    assert said.progress(JOB, NOW) == (
        f"63% of 1,200,000 samples, 1,950/s, done about {clock(NOW + left, NOW)}"
    )


def test_a_job_that_waits():
    waits = WAITS | {"tenant": "", "retries": 0}
    assert said.row(waits)[3:] == ["-", "waiting", "-/8", "-", "-", "?", "-", ""]
    assert said.headline(waits | {"gpu_type": "A100"}, {}, NOW) == (
        f"17 resnet: waiting since {clock(NOW - 9000, NOW)}, wants 1 to 8 GPUs of type A100"
    )
    assert said.progress(waits, NOW) == ""


def test_a_job_that_is_over():
    assert said.row(OVER)[4:] == ["failed", "-/8", "-", "1:12h", "-", "63%", "gpu1 was lost"]
    ended = f"17 resnet: failed at {clock(NOW, NOW)}, attempt 3 of this job, retries used 0 of 2, "
    assert said.headline(OVER, {}, NOW) == ended + "exit code 3"
    assert said.headline(OVER | {"exit_signal": 11}, {}, NOW) == ended + "died of signal 11"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "no limit of running time (72 min used)"),
        ({"time_limit_s": 43200.0, "grace_s": 0.0}, "12 h running time (72 min used), 0 s to save its work"),
        ({"after": ["3", "5"]}, "no limit of running time (72 min used), starts after 3, 5"),
    ],
)
def test_limits(more, text):
    assert said.limits(JOB | more) == text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"samples_total": None}, "756,000 samples, 1,950/s"),
        ({"samples_per_s": None}, "63% of 1,200,000 samples"),
        ({"samples_per_s": 0.0}, "63% of 1,200,000 samples"),
        ({"samples_done": 2e6, "samples_per_s": None}, "100% of 1,200,000 samples"),
    ],
)
def test_what_is_known_of_progress(more, text):
    assert said.progress(JOB | more, NOW) == text


def test_parameter_servers_and_several_nodes():
    spread = JOB | {"nodes": {"a": {"gpus": [0]}, "b": {"gpus": []}}, "gpus": 1, "servers": 2}
    told = said.headline(spread, {"a": "V100"}, NOW)
    assert " with 1 GPU and 2 servers (V100 x1 on a, servers on b)" in told


def test_the_command_as_it_would_be_typed():
    assert said.command(JOB) == "python train.py --lr '0.1 x'"
    assert said.command(JOB | {"command": "echo\n\x1b[31mx"}) == "echo x"
