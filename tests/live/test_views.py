"""Jobs and nodes as users see them, at every point of a life."""

from __future__ import annotations

import pytest

from live_cases import controller_of, hand_in
from trainyard.core.events import (
    GpuFailed,
    JobFailed,
    JobFinished,
    JobHeld,
    JobStopped,
    NodeDrained,
    NodeFailed,
    ProgressReported,
)
from trainyard.live.views import node_views
from trainyard.model.terms import Terms


@pytest.fixture
def controller(tmp_path):
    with controller_of(tmp_path / "store") as (made, _):
        yield made


def decide(controller):
    controller.decide()
    controller.commit()


def tell(controller, event):
    controller.clock.now_s = event.time_s
    controller.tell(event)
    controller.commit()


def view(controller, job_id="a"):
    return controller.published.job(job_id)


def nodes(controller):
    return {each["node"]: each for each in controller.published.nodes}


def test_a_job_that_waits_has_nothing_yet(controller):
    hand_in(controller, "a", gpus=3, tenant="red", priority=2)
    shown = view(controller)
    assert (shown["state"], shown["attempt"], shown["gpus"], shown["nodes"]) == ("waiting", 0, 0, {})
    assert (shown["name"], shown["user"], shown["tenant"], shown["priority"]) == ("a", "ann", "red", 2)
    assert (shown["min_gpus"], shown["max_gpus"]) == (3, 3)
    assert (shown["command"], shown["workdir"]) == (["true"], "/")
    for nothing in ("started_s", "finished_s", "samples_done", "samples_per_s", "exit_code", "reported_s"):
        assert shown[nothing] is None


def test_a_job_that_runs_shows_where_with_which_gpus(controller):
    hand_in(controller, "a", gpus=3)
    controller.clock.now_s = 4.0
    decide(controller)
    shown = view(controller)
    assert (shown["state"], shown["attempt"], shown["gpus"], shown["started_s"]) == ("running", 1, 3, 4.0)
    assert {node: held["gpus"] for node, held in shown["nodes"].items()} == {"n0": [0, 1], "n1": [0]}
    assert shown["nodes"]["n1"] == {"gpus": [0], "servers": 0, "cpus": 4.0, "memory_gb": 32.0}
    assert nodes(controller)["n0"]["gpus_used"] == 2
    assert nodes(controller)["n1"] | {"jobs": []} == {
        "node": "n1",
        "state": "ready",
        "gpu_type": "V100",
        "gpus": 2,
        "gpus_used": 1,
        "gpus_broken": [],
        "cpus": 8.0,
        "cpus_used": 4.0,
        "memory_gb": 64.0,
        "memory_gb_used": 32.0,
        "jobs": [],
    }
    assert nodes(controller)["n1"]["jobs"] == ["a"]


def test_samples_are_shown_only_of_a_job_that_speaks_of_them(controller):
    hand_in(controller, "a", terms=Terms())
    hand_in(controller, "b", samples=5000.0, duration_s=None)
    decide(controller)
    assert view(controller)["samples_total"] is None  # its work is known in seconds
    assert view(controller, "b")["samples_total"] == 5000.0
    tell(controller, ProgressReported(10.0, "a", 30.0, 3.0, attempt=1))
    shown = view(controller)
    assert (shown["samples_done"], shown["samples_per_s"], shown["reported_s"]) == (30.0, 3.0, 10.0)


def test_a_job_that_is_over_says_how_it_ended_and_holds_nothing(controller):
    hand_in(controller, "a")
    hand_in(controller, "b")
    decide(controller)
    tell(controller, JobFinished(50.0, "a", attempt=1))
    tell(controller, JobFailed(60.0, "b", "exit", "rank 0 exited with 3", 3, 1))
    done, failed = view(controller), view(controller, "b")
    assert (done["state"], done["exit_code"], done["reason_code"], done["finished_s"]) == (
        "done",
        0,
        "",
        50.0,
    )
    assert (failed["state"], failed["exit_code"], failed["reason_code"]) == ("failed", 3, "exit")
    assert failed["reason"] == "rank 0 exited with 3"
    assert done["nodes"] == failed["nodes"] == {}
    assert (done["run_s"], done["gpu_s"]) == (50.0, 50.0)
    assert {each["gpus_used"] for each in controller.published.nodes} == {0}


def test_retries_that_were_used_are_counted(controller):
    hand_in(controller, "a", terms=Terms(retries=2))
    decide(controller)
    tell(controller, JobFailed(10.0, "a", "exit", "it failed", 1, 1))
    shown = view(controller)
    assert (shown["state"], shown["retries"], shown["retries_used"]) == ("waiting", 2, 1)
    assert shown["started_s"] is None  # it does not run


def test_a_job_that_stops_still_occupies_its_gpus(controller):
    hand_in(controller, "a", gpus=2)
    decide(controller)
    tell(controller, JobHeld(20.0, "a"))
    assert view(controller)["state"] == "stopping"
    assert nodes(controller)["n0"]["gpus_used"] == 2
    assert nodes(controller)["n0"]["jobs"] == ["a"]
    tell(controller, JobStopped(25.0, "a", 1, code="saved", exit_code=75))
    assert (view(controller)["state"], view(controller)["exit_code"]) == ("held", 75)
    assert nodes(controller)["n0"]["gpus_used"] == 0


def test_nodes_say_what_is_the_matter_with_them(controller):
    hand_in(controller, "a", gpus=2)
    decide(controller)
    tell(controller, NodeDrained(5.0, "n0"))
    assert nodes(controller)["n0"]["state"] == "draining"
    tell(controller, JobFinished(9.0, "a", attempt=1))
    assert nodes(controller)["n0"]["state"] == "drained"
    tell(controller, GpuFailed(10.0, "n1", 1))
    assert nodes(controller)["n1"]["gpus_broken"] == [1]
    tell(controller, NodeFailed(11.0, "n1"))
    assert nodes(controller)["n1"]["state"] == "down"


def test_who_occupies_what_is_the_same_with_and_without_indices(controller):
    for n in range(3):
        hand_in(controller, f"j{n}")
    decide(controller)
    yard = controller.yard
    with_indices = node_views(yard)
    yard.seats = None
    assert node_views(yard) == with_indices
    assert sum(each["gpus_used"] for each in with_indices) == 3
