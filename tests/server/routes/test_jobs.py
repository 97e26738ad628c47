"""Jobs by the API: handed in once, found by name, changed, listed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server_cases import TENANTS, served, told, until
from trainyard.server.desk import MOST_READERS
from trainyard.server.submission.reading import READERS

SLEEP = ("sleep", "600")


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with served(tmp_path_factory.mktemp("jobs")) as running:
        yield running


@pytest.fixture
def sleeper(api):
    job = api.submit(SLEEP, gpus=1)
    api.wait(job["job_id"], "running")
    yield job["job_id"]
    api.post(f"/jobs/{job['job_id']}/cancel", {"now": True})
    api.wait(job["job_id"])


def test_a_job_is_answered_before_it_is_decided_on_and_runs(api):
    job = api.submit(("sh", "-c", "exit 0"), name="first", user="ann", tenant="vision", priority=3)
    assert (job["name"], job["user"], job["tenant"], job["priority"]) == ("first", "ann", "vision", 3)
    assert (job["state"], job["command"], job["workdir"]) == ("waiting", ["sh", "-c", "exit 0"], "/")
    done = api.wait(job["job_id"])
    assert (done["state"], done["exit_code"], done["attempt"]) == ("done", 0, 1)
    assert done["submitted_s"] <= done["started_s"] <= done["finished_s"]
    (attempt,) = done["attempts"]
    assert (attempt["attempt"], attempt["exit_code"]) == (1, 0)
    assert next(iter(attempt["nodes"].values())) == {"gpus": 1, "servers": 0, "cpus": 2.0, "memory_gb": 4.0}
    assert os.path.isdir(done["checkpoint"])


def test_a_failure_has_its_reason(api):
    done = api.wait(api.submit("exit 3")["job_id"])
    assert (done["state"], done["exit_code"], done["reason_code"]) == ("failed", 3, "exit")


def test_its_story_is_told(api):
    job_id = api.submit()["job_id"]
    api.wait(job_id)
    story = api.get(f"/jobs/{job_id}/story").json()["story"]
    assert [row["state"] for row in story] == ["submitted", "waiting", "running", "done"]
    assert story[0]["text"] == f"submitted by {api.desk.owner}"
    places = [(row["seq"], row["n"]) for row in story]
    assert places == sorted({*places})


def test_the_same_key_gives_the_same_job(api):
    body = {"command": ["true"], "workdir": "/", "request_key": "once"}
    first, again = api.post("/jobs", body), api.post("/jobs", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job_id"] == again.json()["job_id"]


def test_the_same_key_at_the_same_time_gives_the_same_job(api):
    """All of them may be in one transaction, where the store does not know the first one yet."""
    body = {"command": ["true"], "workdir": "/", "request_key": "together"}
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(api.post("/jobs", body))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]


def test_a_submission_that_is_wrong_leaves_nothing(api):
    before = api.get("/jobs", all=1).json()["total"]
    assert api.refused("/jobs", {"command": ["x"], "workdir": "/", "gpu": 1}) == (
        "gpu: there is no such field; did you mean 'gpus'?",
        "gpu",
    )
    message, field = api.refused("/jobs", {"command": ["x"], "workdir": "/", "gpus": 64})
    assert (message, field) == ("gpus: 64, but the cluster has 4 GPUs; trainyard nodes shows them", "gpus")
    body = {"command": ["x"], "workdir": "/", "tenant": "vision", "gpus": 3}
    assert api.refused("/jobs", body)[1] == "gpus"
    assert TENANTS["vision"].limit == 2
    assert api.get("/jobs", all=1).json()["total"] == before


def test_a_directory_that_cannot_be_entered_is_said_at_once(api, tmp_path):
    gone = str(tmp_path / "gone")
    message, field = api.refused("/jobs", {"command": ["x"], "workdir": gone})
    assert field == "workdir"
    user = api.desk.owner
    assert message == f"workdir: {gone} cannot be entered by user {user} on node a: No such file or directory"
    (tmp_path / "file").touch()
    message, _ = api.refused("/jobs", {"command": ["x"], "workdir": str(tmp_path / "file")})
    assert message.endswith("Not a directory")


def test_a_directory_on_a_disk_that_hangs_keeps_no_other_request_waiting(api, monkeypatch):
    asked = []
    loop = threading.get_ident
    monkeypatch.setattr("trainyard.server.submitting.check_directory", lambda *_: asked.append(loop()))
    of_loop = concurrent.futures.Future()
    api.loop.call_soon_threadsafe(lambda: of_loop.set_result(loop()))
    api.wait(api.submit()["job_id"])
    assert asked not in ([], [of_loop.result(60)])


def test_many_readers_leave_the_controller_its_connection(api, monkeypatch):
    """More readers than the pool has connections: they take turns, and a submission is written meanwhile."""
    at_once, most, go = [0], [0], threading.Event()

    def read(connection):
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        go.wait(60)
        at_once[0] -= 1

    futures = [asyncio.run_coroutine_threadsafe(api.desk.read(read), api.loop) for _ in range(40)]
    try:
        until(api.desk.readers.locked)
        asked = api.desk.ask(lambda controller: controller.store.is_ours())
        assert asyncio.run_coroutine_threadsafe(asked, api.loop).result(60)
    finally:
        go.set()
    for future in futures:
        future.result(60)
    assert most[0] <= MOST_READERS


def test_a_directory_that_another_job_makes_is_not_asked_for(api, tmp_path):
    made = tmp_path / "made"
    first = api.submit(f"sleep 0.2; mkdir {made}")["job_id"]
    second = api.submit(("pwd",), workdir=str(made), after=[first])["job_id"]
    assert api.wait(second)["state"] == "done"


def test_a_job_waits_for_those_before_it(api, sleeper):
    job = api.submit(after=[sleeper])
    assert api.job(job["job_id"])["state"] in ("waiting", "held")
    message, field = api.refused("/jobs", {"command": ["x"], "workdir": "/", "after": [sleeper, "999"]})
    assert (message, field) == ("after[1]: there is no job 999; trainyard ps -a shows all", "after[1]")
    api.post(f"/jobs/{sleeper}/cancel", {"now": True})
    assert api.wait(job["job_id"])["reason_code"] == "dependency"


def test_a_job_after_one_that_failed_is_refused_and_after_one_that_is_done_starts(api):
    failed, done = api.submit("exit 1")["job_id"], api.submit()["job_id"]
    api.wait(failed), api.wait(done)
    message, _ = api.refused("/jobs", {"command": ["x"], "workdir": "/", "after": [failed]})
    assert message == f"after[0]: job {failed} is failed; this one would never start"
    assert api.wait(api.submit(after=[done])["job_id"])["state"] == "done"


def test_a_running_job_is_cancelled(api, sleeper):
    job = api.post(f"/jobs/{sleeper}/cancel").json()
    assert job["state"] in ("stopping", "killing", "cancelled")
    over = api.wait(sleeper)
    assert (over["state"], over["reason"]) == ("cancelled", f"cancelled by {api.desk.owner}")
    assert told(api.post(f"/jobs/{sleeper}/cancel"), 409) == (f"job {sleeper} is cancelled", None)


def test_a_job_that_ignores_the_signal_is_killed_at_once_if_asked(api):
    job_id = api.submit("trap '' TERM; sleep 600")["job_id"]
    api.wait(job_id, "running")
    api.post(f"/jobs/{job_id}/cancel", {"now": True})
    assert api.wait(job_id)["state"] == "cancelled"


def test_a_job_is_held_and_released(api, sleeper):
    assert api.post(f"/jobs/{sleeper}/hold").status_code == 200
    assert api.wait(sleeper, "held")["attempt"] == 1
    assert api.post(f"/jobs/{sleeper}/release").json()["state"] == "waiting"
    assert api.wait(sleeper, "running")["attempt"] == 2
    message, _ = told(api.post(f"/jobs/{sleeper}/release"), 409)
    assert message == f"job {sleeper} is not held"


@pytest.mark.parametrize("path", ["", "/story", "/logs", "/cancel", "/hold", "/release"])
@pytest.mark.parametrize("job_id", ["999", "x", "1_7", "..%2f..", "-1"])
def test_there_is_no_such_job(api, path, job_id):
    ask = api.get if path in ("", "/story", "/logs") else api.post
    message, _ = told(ask(f"/jobs/{job_id}{path}"), 404)
    assert "there is no job" in message or "knows no" in message


@pytest.mark.parametrize(
    ("path", "body", "line"),
    [
        ("cancel", {"now": 1}, "now: 1 does not fit; give true or false"),
        ("cancel", {"nwo": True}, "nwo: there is no such field; did you mean 'now'?"),
        ("hold", {"x": True}, "x: there is no such field"),
        ("cancel", [1], "the body is a list; it must be a JSON object"),
    ],
)
def test_a_change_that_is_not_understood_changes_nothing(api, sleeper, path, body, line):
    assert api.refused(f"/jobs/{sleeper}/{path}", body)[0] == line
    assert api.job(sleeper)["state"] == "running"


# -- lists and names ----------------------------------------------------------------------


def test_lists_are_by_number_and_go_on_where_they_ended(api):
    ids = [api.submit(name=f"listed-{i}", user="lister")["job_id"] for i in range(5)]
    for job_id in ids:
        api.wait(job_id)
    first = api.get("/jobs", q="listed", limit=2).json()
    assert ([job["job_id"] for job in first["jobs"]], first["total"]) == (ids[:2], 5)
    second = api.get("/jobs", q="listed", limit=3, after=first["next"]).json()
    assert ([job["job_id"] for job in second["jobs"]], second["next"]) == (ids[2:], None)
    newest = api.get("/jobs", all=1, q="listed", limit=2).json()
    assert ([job["job_id"] for job in newest["jobs"]], newest["total"]) == (ids[:2:-1], 5)
    rest = api.get("/jobs", all=1, q="LISTER", limit=9, after=newest["next"]).json()
    assert ([job["job_id"] for job in rest["jobs"]], rest["next"]) == (ids[2::-1], None)


def test_lists_by_state(api, sleeper):
    for everything in (0, 1):
        running = api.get("/jobs", state="running", all=everything).json()["jobs"]
        assert sleeper in [job["job_id"] for job in running]
        done = api.get("/jobs", state="done", all=everything).json()["jobs"]
        assert {job["state"] for job in done} <= {"done"}
    assert api.get("/jobs", state="nonsense").json() == {"jobs": [], "total": 0, "next": None}
    assert api.get("/jobs", all=1, q="%").json()["total"] == 0


def test_jobs_that_the_controller_forgot_are_in_the_store(api):
    job_id = api.submit(name="forgotten", user="old")["job_id"]
    before = api.wait(job_id)
    api.desk.controller.published.forget(job_id)
    assert api.job(job_id) == before
    assert [job["job_id"] for job in api.get("/jobs", q="forgotten").json()["jobs"]] == [job_id]
    assert [job["job_id"] for job in api.get("/jobs", q="forgotten", all=1).json()["jobs"]] == [job_id]
    assert api.get("/jobs/find", name="forgo", user="old").json()["jobs"][0]["job_id"] == job_id


def test_an_old_job_is_only_in_the_long_list(api, monkeypatch):
    job_id = api.submit(name="aged")["job_id"]
    api.wait(job_id)
    monkeypatch.setattr("trainyard.server.jobs.RECENT_S", -1.0)
    assert api.get("/jobs", q="aged").json()["jobs"] == []
    assert len(api.get("/jobs", q="aged", all=1).json()["jobs"]) == 1


@pytest.mark.parametrize("query", [{"limit": "x"}, {"after": "y"}, {"all": "z"}])
def test_a_question_that_is_not_understood(api, query):
    message, field = told(api.get("/jobs", **query), 422)
    assert field == next(iter(query))
    assert message.startswith(f"{field}: ")


def test_names_find_unfinished_jobs_first(api):
    user = "finder"
    over = api.submit(name="res", user=user)["job_id"]
    api.wait(over)

    def find(name):
        return [job["job_id"] for job in api.get("/jobs/find", name=name, user=user).json()["jobs"]]

    assert find("res") == find("r") == find(over) == [over]
    one = api.submit(SLEEP, name="resnet", user=user, gpus=1)["job_id"]
    assert find("res") == [one]  # a beginning of an unfinished job comes before a finished one
    assert find("-") == [one]
    two = api.submit(SLEEP, name="res-big", user=user, gpus=1)["job_id"]
    message, _ = told(api.get("/jobs/find", name="res", user=user), 422)
    assert message == f"'res' fits 2 jobs: {one} resnet, {two} res-big; give the id"
    assert find("resnet") == [one]
    assert find("-") == [two]
    message, _ = told(api.get("/jobs/find", name="tes", user=user), 404)
    assert message == "no job is called 'tes'; trainyard ps -a shows all"
    for job_id in (one, two):
        api.post(f"/jobs/{job_id}/cancel", {"now": True})
        api.wait(job_id)
    message, _ = told(api.get("/jobs/find", name="re", user=user), 422)
    assert "'re' fits 3 jobs" in message


def test_digits_are_never_a_beginning(api):
    api.wait(api.submit(name="77up")["job_id"])
    assert told(api.get("/jobs/find", name="77"), 404)[0].startswith("there is no job 77;")


def test_who_has_no_job_has_no_last_one(api):
    assert told(api.get("/jobs/find", name="-", user="nobody"), 404)[0] == (
        "user nobody has not submitted any job yet"
    )


# -- nothing that is sent breaks it ----------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.dictionaries(
    st.sampled_from(sorted({*READERS} - {"command"})) | st.text(max_size=4), JSON, max_size=4
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(body=FIELDS | JSON, least=st.booleans())
def test_no_body_breaks_the_server(api, body, least):
    if least and isinstance(body, dict):
        body = {"workdir": "/", **body, "command": ["true"]}
    answer = api.client.post("/jobs", content=json.dumps(body).encode("utf-8", "surrogatepass"))
    assert answer.status_code in (200, 201, 422), answer.text
    if answer.status_code == 422:
        told(answer, 422)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=40))
def test_no_bytes_break_the_server(api, data):
    for path in ("/jobs", "/policy", "/nodes/a/drain"):
        answer = api.client.post(path, content=data)
        assert answer.status_code in (200, 409, 422), answer.text
    api.post("/nodes/a/undrain")


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', "{", "[" * 100_000, '{"gpus": 1e999}', "\ufeff{}", "1" * 5000]
)
def test_what_is_no_json_is_told_in_one_line(api, text):
    answer = api.client.post("/jobs", content=text.encode())
    told(answer, 422)
