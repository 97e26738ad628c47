"""The controller's state, its nodes, its policy, and who may ask at all."""

from __future__ import annotations

import os
import socket

import httpx
import pytest

from server_cases import PATIENCE_S, served, told, until
from trainyard._version import __version__
from trainyard.live.store.log import StoreError

PATHS = [
    "/status",
    "/jobs",
    "/jobs/1",
    "/jobs/1/logs",
    "/nodes",
    "/policy",
    "/events",
    "/openapi.json",
    "/nothing",
]


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with served(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_the_status_says_how_everything_is(api):
    status = api.get("/status").json()
    assert (status["version"], status["pid"], status["host"]) == (
        __version__,
        os.getpid(),
        socket.gethostname(),
    )
    assert status["store"]["kind"] == "sqlite"
    assert status["store"]["bytes"] > 10_000
    assert status["store"]["trouble"] is None
    assert status["backend"] == {"name": "local", "nodes": 2, "silent_s": 0.0, "silence": "", "trouble": {}}
    assert (status["policy"], status["paused"], status["epoch"]) == ("fifo", False, 1)
    assert (status["plans_refused"], status["refused"], status["notes"]) == (0, None, ["a note"])
    assert status["started_s"] <= status["now_s"]
    before = status["jobs"].get("done", 0)
    api.wait(api.submit()["job_id"])
    after = api.get("/status").json()
    assert after["jobs"]["done"] == before + 1
    assert after["events"] > status["events"]


def test_a_backend_that_does_not_answer_is_shown(api):
    api.live.eyes.answered_at -= 1000
    api.live.hands.trouble["start 7"] = "no answer"
    try:
        backend = api.get("/status").json()["backend"]
        assert backend["trouble"] == {"start 7": "no answer"}
    finally:
        api.live.hands.trouble.clear()


def test_nodes_and_what_is_used_of_them(api):
    job_id = api.submit(("sleep", "600"), gpus=2, gpu_types=["A100"])["job_id"]
    api.wait(job_id, "running")
    a, b = api.get("/nodes").json()["nodes"]
    assert (a["node"], a["gpus_used"], a["state"]) == ("a", 0, "ready")
    assert (b["node"], b["gpus_used"], b["jobs"]) == ("b", 2, [job_id])
    api.post(f"/jobs/{job_id}/cancel", {"now": True})
    api.wait(job_id)


def test_a_node_is_drained_and_used_again(api):
    assert api.post("/nodes/a/drain", {"reason": "disk swap"}).json()["state"] == "drained"
    assert told(api.post("/nodes/a/drain"), 409)[0] == "node a is drained already"
    job_id = api.submit(("sleep", "600"), gpus=2, gpu_types=["V100"])["job_id"]
    assert api.job(job_id)["state"] == "waiting"
    assert api.post("/nodes/a/undrain").json()["state"] == "ready"
    assert api.wait(job_id, "running")["nodes"].keys() == {"a"}
    api.post(f"/jobs/{job_id}/cancel", {"now": True})
    api.wait(job_id)
    assert told(api.post("/nodes/a/undrain"), 409)[0] == "node a is not drained"
    assert told(api.post("/nodes/x/drain"), 404)[0] == "there is no node x; trainyard nodes shows them"
    assert api.refused("/nodes/a/drain", {"reason": 7})[1] == "reason"
    with api.live.controller.store.engine.connect() as connection:
        by = connection.exec_driver_sql("SELECT by FROM events WHERE kind = 'NodeDrained'").scalars().first()
    assert by == f"{api.desk.owner}: disk swap"


def test_the_policy_is_seen_and_changed(api):
    assert api.get("/policy").json() == {"policy": "fifo"}
    assert api.post("/policy", {"policy": "srtf+steepest"}).json() == {"policy": "srtf+steepest"}
    assert api.get("/policy").json() == {"policy": "srtf+steepest"}
    message, field = api.refused("/policy", {"policy": "stf"})
    assert (field, message[:40]) == ("policy", "policy: policy 'stf': unknown stage 'stf")
    assert api.refused("/policy", {})[1] == "policy"
    assert api.refused("/policy", {"policy": 7})[1] == "policy"
    assert api.get("/status").json()["policy"] == "srtf+steepest"
    api.post("/policy", {"policy": "fifo"})


def test_down_says_how_many_run_and_begins_to_end(api):
    assert api.refused("/down", {"checkpoint": "yes"})[1] == "checkpoint"
    assert api.downs == []
    answer = api.post("/down", {"checkpoint": True})
    assert (answer.status_code, answer.json(), api.downs) == (202, {"running": 0}, [True])
    api.post("/down")
    assert api.downs == [True, False]
    api.downs.clear()


# -- who may ask -------------------------------------------------------------------------------------------


def bare(api, path, **headers):
    headers = {"host": "localhost", **headers}
    return httpx.get(f"{api.url}/api/v1{path}", headers=headers, timeout=PATIENCE_S, trust_env=False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "given", [{}, {"authorization": "Bearer x"}, {"authorization": "Basic a"}, {"authorization": "Bearer"}]
)
def test_without_the_token_nothing_is_told(api, path, given):
    answer = bare(api, path, **given)
    message, _ = told(answer, 401)
    assert "server.json" in message
    assert answer.headers["trainyard-version"] == __version__


def test_a_page_of_another_name_is_not_answered(api):
    answer = bare(api, "/status", host="evil.example", authorization=f"Bearer {api.token}")
    assert told(answer, 421)[0].startswith("'evil.example' is no name of this server")
    assert bare(api, "/status", host="localhost:99", authorization=f"bearer {api.token}").status_code == 200


def test_paths_that_are_none(api):
    assert "knows no /api/v1/nothing" in told(api.get("/nothing"), 404)[0]
    assert "Method Not Allowed" in told(api.client.put("/jobs", json={}), 405)[0]
    assert api.get("/openapi.json").json()["info"]["version"] == __version__


def test_a_body_that_is_too_large_is_not_read(api):
    body = {"command": ["x"], "workdir": "/", "env": {"A": "x" * 1_000_000}}
    assert "larger than 1,000 kB" in told(api.post("/jobs", body), 413)[0]

    def pieces():
        for _ in range(30):
            yield b"x" * 50_000

    answer = api.client.post("/jobs", content=pieces())  # without a length in the header
    assert "larger than 1,000 kB" in told(answer, 413)[0]


def test_answers_are_for_nobody_else(api):
    headers = api.get("/status").headers
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert headers["trainyard-version"] == __version__


# -- trouble -----------------------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_gives_503_and_the_job_comes_once_it_can(api, monkeypatch):
    store = api.live.controller.store
    write, broken = store.write, [True]

    def writes(batch):
        if broken:
            raise StoreError("disk is full")
        write(batch)

    monkeypatch.setattr(store, "write", writes)
    body = {"command": ["true"], "workdir": "/", "request_key": "later"}
    message, _ = told(api.post("/jobs", body), 503)
    assert message.startswith("the store cannot be written: disk is full; ")
    assert api.get("/status").json()["store"]["trouble"] == "disk is full"
    assert api.get("/jobs").status_code == 200  # readers do not wait
    broken.clear()
    until(lambda: api.get("/status").json()["store"]["trouble"] is None)
    answer = api.post("/jobs", body)
    assert answer.status_code == 200  # it was taken in after all, once
    api.wait(answer.json()["job_id"])


def test_a_failure_of_ours_is_told_and_logged(api, monkeypatch, capfd):
    def fails(_):
        raise RuntimeError("a mistake")

    monkeypatch.setattr("trainyard.server.routes.cluster.status_of", fails)
    assert told(api.get("/status"), 500)[0].startswith("the controller failed: RuntimeError: a mistake")
    assert "RuntimeError: a mistake" in capfd.readouterr().err


def test_a_controller_whose_thread_ended_says_so(tmp_path):
    with served(tmp_path) as api:

        def fails(_):
            raise SystemExit("over")  # no Exception: the thread ends

        api.live.shell.ask(fails)
        until(api.live.stopped.is_set)
        body = {"command": ["true"], "workdir": "/"}
        assert told(api.post("/jobs", body), 503)[0] == "the controller has ended: over"


def test_a_controller_that_leaves_takes_nothing_new(tmp_path):
    with served(tmp_path) as api:
        api.loop.call_soon_threadsafe(api.desk.leaving.set)
        until(api.desk.leaving.is_set)
        assert (
            "the controller is going down"
            in told(api.post("/jobs", {"command": "x", "workdir": "/"}), 503)[0]
        )
        assert api.get("/jobs").status_code == 200
