"""Ends that come from outside, for real: limits, users, nodes, dead shims, and what a job waits for."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from itertools import pairwise

import pytest

from local_cases import groups_or_skip, is_alive, until
from trainyard.core.events import (
    DecisionsPaused,
    DecisionsResumed,
    JobCancelled,
    JobHeld,
    JobReleased,
    NodeDrained,
    NodeFailed,
    NodeJoined,
    NodeLeft,
)
from trainyard.live.backends.base import RunKey
from world_cases import World, nodes, with_settings

SAVES = "trap 'exit 75' TERM; touch $C/ready$RANK; LOOP"
DEAF = "trap '' TERM; touch $C/ready$RANK; LOOP"
CLOCK = r"\d\d:\d\d"


@pytest.fixture
def world(tmp_path):
    with World(tmp_path, nodes(2)) as made:
        yield made


def reason(view):
    return view["reason_code"], view["reason"]


# -- killed again and again ----------------------------------------------------------------------------------


def test_five_restarts_without_progress_hold_a_job_and_a_release_goes_on(world):
    job = world.submit("[ -e $C/enough ] || kill -9 $$")
    view = world.until(job, "held")
    assert reason(view) == ("no_progress", "5 restarts, none got past the start; last: killed")
    assert (view["attempt"], view["retries_used"]) == (5, 0)
    assert [row["code"] for row in world.attempts(job)] == ["killed"] * 5
    assert world.story(job)[-1].endswith("(killed, not counted); held until it is released")
    world.file(job, "enough").touch()
    world.tell(JobReleased, job)
    assert world.until(job, "done")["attempt"] == 6


def test_saving_by_itself_again_and_again_without_progress_holds_a_job(world):
    job = world.submit("exit 75")
    assert reason(world.until(job, "held"))[1].endswith("last: saved_itself")


def test_progress_between_them_lets_a_job_go_on(world):
    """It saves one sample more in every attempt: so it may be killed as often as it likes."""
    says = '{\\"samples_done\\": $TRAINYARD_ATTEMPT, \\"samples_saved\\": $TRAINYARD_ATTEMPT}'
    job = world.submit(
        f'[ $TRAINYARD_ATTEMPT = 8 ] && exit 0; echo "{says}" > $TRAINYARD_PROGRESS; kill -9 $$'
    )
    view = world.until(job, "done")
    assert (view["attempt"], view["retries_used"]) == (8, 0)


def test_between_counted_ends_it_waits_longer_and_longer(tmp_path):
    with World(tmp_path, settings=with_settings(back_off_s=0.1, most_back_off_s=0.3)) as world:
        job = world.submit("exit 3", retries=3)
        world.until(job, "failed", retries_used=3)
        runs = world.attempts(job)
        waits = [after["started_s"] - run["ended_s"] for run, after in pairwise(runs)]
        assert len(waits) == 3
        assert all(wait >= least for wait, least in zip(waits, (0.1, 0.2, 0.3), strict=True)), waits


# -- shims, nodes, members -----------------------------------------------------------------------------------


def test_a_dead_shim_takes_its_run_with_it_and_the_job_goes_on(world):
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; sleep 1000 & " + DEAF)
    world.ready(job, "ready0")
    shim, workers = world.pids(job)
    signal_to(shim)
    view = world.until(job, "done")
    first = world.attempts(job)[0]
    assert (first["code"], first["text"]) == ("lost_shim", "whoever watched it on n0 is gone")
    assert (view["attempt"], view["retries_used"]) == (2, 0)
    assert not any(is_alive(pid) for pid in workers)


def signal_to(pid):
    os.kill(pid, signal.SIGKILL)


def test_one_member_lost_stops_all_members(world):
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; " + DEAF, gpus=4)
    for rank in range(4):
        world.ready(job, f"ready{rank}")
    _, workers = world.pids(job, node="n0")
    shim, others = world.pids(job, node="n1")
    signal_to(shim)
    world.until(job, "done")
    assert world.attempts(job)[0]["text"] == "whoever watched it on n1 is gone"
    assert not any(is_alive(pid) for pid in workers + others)


def test_the_code_of_a_job_is_that_of_the_worker_that_failed_first_on_any_node(world):
    """Rank 3 fails first, but its node has a worker that takes its time; the other node ends before."""
    text = "case $RANK in 3) touch $C/failed; exit 5;; 2) trap '' TERM; LOOP;; esac; "
    job = world.submit(text + "while [ ! -e $C/failed ]; do sleep 0.01; done; sleep 0.1; exit 6", gpus=4)
    view = world.until(job, "failed")
    assert view["exit_code"] == 5
    assert re.fullmatch(r"rank 3 on n1 exited with 5 after .* s; logs 1 --rank 3", view["reason"])


def test_what_ran_on_a_node_that_fails_is_started_elsewhere(world):
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; " + DEAF)
    world.ready(job, "ready0")
    _, workers = world.pids(job)
    world.tell(NodeFailed, "n0")
    view = world.until(job, "done")
    first, second = world.attempts(job)
    assert (first["code"], first["text"]) == ("node_lost", "node n0 failed")
    assert (list(json.loads(second["nodes"])), view["retries_used"]) == (["n1"], 0)
    assert not any(is_alive(pid) for pid in workers)


def test_what_runs_on_a_drained_node_goes_on_and_nothing_new_starts_there(world):
    job = world.submit("touch $C/ready; while [ ! -e $C/enough ]; do sleep 0.01; done")
    world.ready(job)
    world.tell(NodeDrained, "n0")
    other = world.submit("exit 0")
    world.until(other, "done")
    assert [list(json.loads(run["nodes"])) for run in world.attempts(other)] == [["n1"]]
    world.file(job, "enough").touch()
    assert world.until(job, "done")["attempt"] == 1


# -- what cannot start ---------------------------------------------------------------------------------------


def test_a_start_that_fails_is_tried_three_times(world, tmp_path):
    """A program that somebody is writing to cannot be started now, but perhaps later."""
    program = tmp_path / "train"
    shutil.copy("/bin/true", program)
    program.chmod(0o700)
    with open(program, "ab"):
        job = world.submit([str(program)], retries=5)
        view = world.until(job, "failed")
    code, text = reason(view)
    assert code == "start"
    assert re.fullmatch(rf"{program}: Text file busy on n\d \(3 tries on 2 nodes in .* s\)", text), text
    assert (view["attempt"], view["retries_used"]) == (3, 0)


def test_a_start_that_failed_before_may_go_well(tmp_path):
    program = tmp_path / "train"
    shutil.copy("/bin/true", program)
    program.chmod(0o700)
    with World(tmp_path, settings=with_settings(back_off_s=1.0, most_back_off_s=1.0)) as world:
        with open(program, "ab"):
            job = world.submit([str(program)])
            until(lambda: any(run["code"] for run in world.attempts(job)))
        view = world.until(job, "done")
        assert (world.attempts(job)[0]["code"], view["retries_used"]) == ("start", 0)


def test_a_job_that_fits_no_more_says_so_and_runs_when_it_fits_again(world):
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; " + SAVES, gpus=3)
    world.ready(job, "ready2")
    node = world.cluster.nodes[1]
    world.tell(NodeLeft, "n1")
    view = world.until(job, "waiting", reason_code="unschedulable")
    assert re.fullmatch(f"needs 3 GPUs; the cluster has 2 since {CLOCK}", view["reason"])
    assert world.attempts(job)[0]["text"] == "node n1 left"
    world.tell(NodeJoined, node)
    assert world.until(job, "done")["attempt"] == 2


def test_a_job_that_never_fits_ends_when_it_waited_as_long_as_it_may(world):
    job = world.submit("exit 0", gpus=8, gpu_type="GPU", max_wait_s=1.0)
    view = world.view(job)
    assert view["reason_code"] in ("unschedulable", "max_wait")
    view = world.until(job, "failed")
    assert reason(view) == ("max_wait", "not started in 1 s")
    assert any(f"{'failed'}: " in line for line in world.story(job))


def test_a_dependency_that_ended_wrongly_cancels(world):
    first = world.submit("exit 3")
    second = world.submit("exit 0", after={first: "ok"})
    third = world.submit("exit 0", after={first: "failed"})
    fourth = world.submit("exit 0", after={second: "any", third: "failed"})
    assert reason(world.until(second, "cancelled")) == ("dependency", "1 failed")
    world.until(third, "done")
    assert reason(world.until(fourth, "cancelled")) == ("dependency", "3 is done")
    assert world.view(second)["attempt"] == 0


# -- time ----------------------------------------------------------------------------------------------------


def test_at_its_time_limit_a_job_saves_and_has_failed(world):
    job = world.submit(SAVES, time_limit_s=1.5)
    view = world.until(job, "failed")
    code, text = reason(view)
    assert code == "time_limit"
    assert re.fullmatch(rf"its time limit of 1.5 s is over; saved at {CLOCK}", text), text
    assert (view["exit_code"], view["attempt"]) == (75, 1)
    assert [line.split(":")[0] for line in world.story(job)][-2:] == ["stopping", "failed"]


def test_a_job_that_does_not_save_at_its_time_limit_has_failed_for_the_limit(world):
    job = world.submit(DEAF, time_limit_s=0.5, grace_s=0.2)
    code, text = reason(world.until(job, "failed"))
    assert code == "time_limit"
    assert text == "its time limit of 0.5 s is over; it reported no checkpoint"


def test_after_stops_without_a_checkpoint_there_is_more_grace(tmp_path):
    settings = with_settings(grace_s=0.1, many_unsaved=2, most_grace_s=0.3)
    with World(tmp_path, settings=settings) as world:
        job = world.submit("trap '' TERM; touch $C/deaf$TRAINYARD_ATTEMPT; LOOP")
        for attempt in range(1, 6):
            world.until(job, "running", attempt=attempt)
            world.ready(job, f"deaf{attempt}")
            world.tell(DecisionsPaused, stop=True)
            view = world.until(job, "waiting")
            assert view["reason_code"] == "not_saved"
            world.tell(DecisionsResumed)
        said = [row["text"] for row in world.attempts(job)[:5]]
        graces = ["0.1 s", "0.1 s", "0.2 s", "0.3 s", "0.3 s"]
        assert said == [f"{grace} were not enough" for grace in graces]


def test_a_checkpoint_is_remembered_by_the_clock(world):
    says = 'echo "{\\"samples_done\\": 9, \\"samples_saved\\": 8}" > $TRAINYARD_PROGRESS; '
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; trap '' TERM; " + says + DEAF, grace_s=0.2)
    world.until(job, "running", samples_done=9.0)
    world.tell(DecisionsPaused, stop=True)
    view = world.until(job, "waiting")
    assert re.fullmatch(f"0.2 s were not enough; back to {CLOCK}", view["reason"])
    assert view["samples_done"] == 8.0
    assert any(re.search(r"\d+ samples have to be done again", line) for line in world.story(job))
    world.tell(DecisionsResumed)
    world.until(job, "done")


# -- users ---------------------------------------------------------------------------------------------------


def cancel(world, job, **more):
    world.tell(JobCancelled, job, text="by ann", **more)


def test_a_job_that_waits_is_cancelled_at_once(world):
    job = world.submit("exit 0", gpus=8)
    cancel(world, job)
    assert reason(world.until(job, "cancelled")) == ("user", "by ann")


def test_a_job_that_is_held_is_cancelled_at_once(world):
    job = world.submit("exit 0", hold=True)
    world.until(job, "held")
    cancel(world, job)
    assert reason(world.until(job, "cancelled")) == ("user", "by ann")
    assert world.view(job)["attempt"] == 0


def test_a_job_that_runs_saves_before_it_is_cancelled(world):
    job = world.submit("trap 'echo x > $C/saved; exit 75' TERM; touch $C/ready; LOOP")
    world.ready(job)
    world.until(job, "running")
    cancel(world, job)
    view = world.until(job, "cancelled")
    assert (reason(view), view["exit_code"]) == (("user", "by ann"), 75)
    assert world.file(job, "saved").read_text() == "x\n"
    assert [line.split(":")[0] for line in world.story(job)][-2:] == ["stopping", "cancelled"]


def test_a_job_that_does_not_save_is_cancelled_by_its_user_all_the_same(world):
    job = world.submit(DEAF, grace_s=0.2)
    world.ready(job, "ready0")
    cancel(world, job)
    assert reason(world.until(job, "cancelled")) == ("user", "by ann")


def test_cancelled_now_means_killed(world):
    job = world.submit(DEAF)
    world.ready(job, "ready0")
    world.until(job, "running")
    cancel(world, job, at_once=True)
    view = world.until(job, "cancelled")
    assert reason(view) == ("user", "by ann")
    assert [line.split(":")[0] for line in world.story(job)][-2:] == ["killing", "cancelled"]


def test_a_job_that_is_being_started_is_killed_and_cancelled_when_nothing_is_there(world):
    start, may = world.backend.ensure_started, asyncio.Event()

    async def later(run):
        await may.wait()
        await start(run)

    world.backend.ensure_started = later
    job = world.submit("touch $C/ran")
    world.until(job, "running")
    cancel(world, job)
    assert reason(world.until(job, "killing")) == ("user", "by ann")
    world.loop.call_soon_threadsafe(may.set)
    world.until(job, "cancelled")
    assert not world.file(job, "ran").exists()


def test_a_job_that_is_held_while_it_runs_saves_and_goes_on_when_released(world):
    job = world.submit("[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; " + SAVES)
    world.ready(job, "ready0")
    world.until(job, "running")
    world.tell(JobHeld, job)
    assert world.until(job, "held")["exit_code"] == 75
    world.tell(JobReleased, job)
    assert world.until(job, "done")["attempt"] == 2


# -- memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["the worker", "a child of it"])
def test_what_needs_more_memory_than_it_has_says_so(tmp_path, who):
    with World(tmp_path, limits=groups_or_skip()) as world:
        eats = f"{sys.executable} -I -S -c \"b'x' * 400_000_000\""
        command = f"exec {eats}" if who == "the worker" else f"{eats}; exit 1"
        job = world.submit(f"[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; {command}", memory_gb=0.05, retries=1)
        world.until(job, "done", retries_used=1)
        first = world.attempts(job)[0]
        assert first["code"] == "memory"
        assert first["text"] == "used 0.05 of 0.05 GB on n0; ask for more: memory_gb_per_gpu"
        died = (None, signal.SIGKILL) if who == "the worker" else (1, None)
        assert (first["exit_code"], first["exit_signal"]) == died
        assert RunKey(job, 1) not in world.backend._marked
