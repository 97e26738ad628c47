"""Output by attempt and rank, by lines or from an offset."""

from __future__ import annotations

import pytest

from controller_cases import UNTIL
from server_cases import served, told


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with served(tmp_path_factory.mktemp("logs")) as running:
        yield running


def logs(api, job_id, **query):
    answer = api.get(f"/jobs/{job_id}/logs", **query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    return answer.content, int(answer.headers["trainyard-offset"]), int(answer.headers["trainyard-attempt"])


def test_the_last_lines_and_everything_from_an_offset(api):
    job_id = api.submit("for i in 1 2 3; do echo line $i; done")["job_id"]
    api.wait(job_id)
    assert logs(api, job_id) == (b"line 1\nline 2\nline 3\n", 21, 1)
    assert logs(api, job_id, lines=2) == (b"line 2\nline 3\n", 21, 1)
    assert logs(api, job_id, offset=14) == (b"line 3\n", 21, 1)
    assert logs(api, job_id, offset=21) == (b"", 21, 1)
    assert logs(api, job_id, offset=0, attempt=1)[0].startswith(b"line 1")


def test_every_rank_has_its_own(api):
    job_id = api.submit("echo $RANK of $WORLD_SIZE", gpus=2)["job_id"]
    api.wait(job_id)
    assert [logs(api, job_id, rank=rank)[0] for rank in (0, 1)] == [b"0 of 2\n", b"1 of 2\n"]
    message, _ = told(api.get(f"/jobs/{job_id}/logs", rank=2), 404)
    assert message == f"attempt 1 of job {job_id} has 2 workers, so there is no rank 2"


def test_parameter_servers_have_theirs(api):
    mark = "$TRAINYARD_CHECKPOINT_DIR/served"
    waits = f"if [ $TRAINYARD_ROLE = server ]; then touch {mark}; sleep 600; fi; {UNTIL.format(mark)}"
    job_id = api.submit(f"echo $TRAINYARD_ROLE; {waits}", servers=1)["job_id"]
    assert api.wait(job_id)["state"] == "done"
    assert logs(api, job_id)[0] == b"worker\n"
    assert logs(api, job_id, server=1)[0] == b"server\n"


def test_every_attempt_has_its_own(api):
    job_id = api.submit("echo attempt $TRAINYARD_ATTEMPT; exit 3", retries=1)["job_id"]
    assert api.wait(job_id)["attempt"] == 2
    assert logs(api, job_id) == (b"attempt 2\n", 10, 2)
    assert logs(api, job_id, attempt=1) == (b"attempt 1\n", 10, 1)
    message, _ = told(api.get(f"/jobs/{job_id}/logs", attempt=3), 404)
    assert message == f"job {job_id} has had 2 attempts, so there is no attempt 3"


def test_a_job_that_never_ran_has_none(api):
    first = api.submit(("sleep", "600"))["job_id"]
    job_id = api.submit(after=[first])["job_id"]
    assert logs(api, job_id) == (b"", 0, 0)
    for each in (job_id, first):
        api.post(f"/jobs/{each}/cancel", {"now": True})
        api.wait(each)


def test_a_large_log_comes_in_pieces(api, monkeypatch):
    monkeypatch.setattr("trainyard.server.routes.logs.MOST_BYTES", 1000)
    monkeypatch.setattr("trainyard.live.backends.local.logs.MOST", 700)
    job_id = api.submit("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done")["job_id"]
    api.wait(job_id)
    whole, offset = b"", 0
    while True:
        piece, after, _ = logs(api, job_id, offset=offset)
        if not piece:
            break
        assert after == offset + len(piece)
        whole, offset = whole + piece, after
    assert whole.decode().split("\n") == [*(f"line {i}" for i in range(500)), ""]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"attempt": "x"}, "attempt"),
        ({"attempt": "0"}, "attempt"),
        ({"rank": -1}, "rank"),
        ({"rank": "a"}, "rank"),
    ],
)
def test_a_question_that_is_not_understood(api, query, field):
    job_id = api.submit()["job_id"]
    api.wait(job_id)
    assert told(api.get(f"/jobs/{job_id}/logs", **query), 422)[1] == field
