"""Runs of the local backend, from their start to their end: real shims, real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest

from local_cases import (
    GROUPS,
    KEY,
    PLAIN,
    Bench,
    benches,
    is_alive,
    kill_shim,
    left_of,
    member,
    run_of,
    until,
)
from trainyard.live.backends.base import MemberKey, MemberState, RunKey
from trainyard.live.backends.local.backend import FencedError
from trainyard.live.backends.local.shim.files import take_lock

bench = benches(PLAIN)
either = benches(PLAIN, GROUPS)

PATIENT = "trap 'exit 75' TERM; touch $C/ready; LOOP"
DEAF = "trap '' TERM; touch $C/ready; LOOP"


def codes(ended):
    return {(exit_.role, exit_.rank): (exit_.code, exit_.signal) for exit_ in ended.exits}


def ready(bench, key=KEY):
    until(bench.file("ready", key).exists)


def pid_in(path):
    """The number in a file, once it is there."""
    return int(until(lambda: path.exists() and path.read_text().strip()))


# -- starting ------------------------------------------------------------------------------------------------


def test_a_run_starts_says_what_it_has_to_say_and_ends(bench):
    bench.start(run_of("echo hi; echo there >&2", member(gpus=(0, 1))))
    ended = bench.ended()
    assert codes(ended) == {("worker", 0): (0, None), ("worker", 1): (0, None)}
    assert (ended.started, ended.first, ended.lost, ended.stop_asked) == (True, None, False, False)
    assert bench.log() == bench.log(1) == b"hi\nthere\n"
    bench.forget()
    assert bench.look().members == {}


def test_it_runs_while_its_processes_do(bench):
    bench.start(run_of(PATIENT))
    assert bench.seen().state in (MemberState.ABSENT, MemberState.PENDING, MemberState.RUNNING)
    bench.started()
    assert bench.seen().state is MemberState.RUNNING


def test_what_is_started_again_and_again_starts_once(bench):
    run = run_of(f"echo $$ >> $C/pids; {PATIENT}")
    for _ in range(3):
        bench.start(run)
    ready(bench)
    bench.start(run)
    for shim in list(bench.backend._shims):
        until(lambda shim=shim: shim.poll() is not None or is_alive(shim.pid))
    bench.stop()
    assert codes(bench.ended()) == {("worker", 0): (75, None)}
    bench.start(run)
    assert len(bench.file("pids").read_text().split()) == 1


def test_of_two_shims_at_once_one_gives_up(bench):
    run = run_of(f"echo $$ >> $C/pids; {PATIENT}")
    bench.start(run)
    for _ in range(5):
        bench.backend._spawn(bench.directory())
    ready(bench)
    until(lambda: sum(shim.poll() is None for shim in list(bench.backend._shims)) == 1)
    assert len(bench.file("pids").read_text().split()) == 1


def test_a_shim_that_finds_the_lock_taken_starts_nothing(bench):
    directory = bench.directory()
    directory.mkdir(parents=True)
    held = take_lock(str(directory / "lock"))
    bench.start(run_of("echo hi"))
    for shim in list(bench.backend._shims):
        assert shim.wait(60) == 0
    assert not (directory / "begun").exists()
    os.close(held)
    bench.start(run_of("echo hi"))
    assert codes(bench.ended()) == {("worker", 0): (0, None)}


def test_a_start_that_comes_after_a_kill_starts_nothing(bench):
    bench.kill()
    bench.start(run_of("touch $C/ran"))
    assert bench.ended().started is False
    assert bench.backend._shims == []


def test_a_shim_that_comes_after_a_kill_starts_nothing(bench):
    run = run_of("touch $C/ran")
    bench.backend._spawn = lambda _: None  # as if the controller died before it could
    bench.start(run)
    del bench.backend._spawn
    assert bench.seen().state is MemberState.ABSENT
    bench.kill()
    assert (bench.ended().started, bench.ended().lost) == (False, False)
    bench.backend._spawn(bench.directory())
    bench.backend._shims[0].wait(60)
    assert not bench.file("ran").exists()


def test_a_kill_before_the_shim_looks_is_seen_by_it(bench):
    """The shim is there, but has not begun: it finds the marker and starts nothing."""
    bench.backend._spawn = lambda _: None
    bench.start(run_of("touch $C/ran"))
    del bench.backend._spawn
    (bench.layout.attempt(KEY) / "kill").touch()
    bench.backend._spawn(bench.directory())
    assert bench.ended().started is False
    assert not bench.file("ran").exists()


def test_a_stop_before_the_shim_looks_is_no_failure(bench):
    """Nothing is started only to be told to stop: it could not have saved anything."""
    bench.backend._spawn = lambda _: None
    bench.start(run_of("touch $C/ran"))
    del bench.backend._spawn
    bench.stop()
    bench.backend._spawn(bench.directory())
    ended = bench.ended()
    assert (ended.exits, ended.why, ended.stop_asked) == ((), "", True)
    assert not bench.file("ran").exists()


def test_another_attempt_has_its_own_files_and_the_same_checkpoints(bench):
    for attempt, gpus in ((1, (0,)), (2, (0, 1, 2)), (3, (1,))):
        run = run_of(
            "echo $TRAINYARD_ATTEMPT $WORLD_SIZE >> $C/sizes",
            member(gpus=gpus),
            key=RunKey("1", attempt),
        )
        bench.start(run)
        bench.ended(run.key)
    assert sorted(bench.file("sizes").read_text().splitlines()) == ["1 1", "2 3", "2 3", "2 3", "3 1"]


def test_a_controller_that_comes_back_sees_what_runs(bench):
    bench.start(run_of(PATIENT))
    bench.started()
    again = Bench(bench.root, epoch=2)
    assert again.seen().state is MemberState.RUNNING
    with pytest.raises(FencedError):
        bench.start(run_of(PATIENT, key=RunKey("2", 1)))
    with pytest.raises(FencedError):
        Bench(bench.root, epoch=1)
    again.stop()
    assert codes(again.ended()) == codes(bench.ended()) == {("worker", 0): (75, None)}
    bench.backend._epoch = 2
    again.close()


# -- ending --------------------------------------------------------------------------------------------------


def test_a_stop_lets_workers_save_and_is_told_once(bench):
    saves = "trap 'echo x >> $C/saved; exit 75' TERM"
    bench.start(run_of(f"{saves}; touch $C/ready; LOOP"))
    ready(bench)
    for _ in range(3):
        bench.stop()
    ended = bench.ended()
    assert (codes(ended), ended.stop_asked, ended.grace_over) == ({("worker", 0): (75, None)}, True, False)
    assert bench.file("saved").read_text() == "x\n"


def test_when_grace_is_over_everything_is_killed(bench):
    bench.start(run_of(f"(trap '' TERM; LOOP) & echo $! > $C/child; {DEAF}"))
    ready(bench)
    child = pid_in(bench.file("child"))
    bench.stop(grace_s=0.1)
    ended = bench.ended()
    assert (codes(ended), ended.grace_over) == ({("worker", 0): (None, signal.SIGKILL)}, True)
    assert not is_alive(child)


def test_a_kill_ends_everything_at_once(bench):
    bench.start(run_of(DEAF, member(gpus=(0, 1))))
    ready(bench)
    bench.kill()
    died = (None, signal.SIGKILL)
    assert codes(bench.ended()) == {("worker", 0): died, ("worker", 1): died}


def test_a_data_loader_is_not_told_to_stop(bench):
    """Only worker processes are: a data loader that is told crashes the training step."""
    loader = "(trap 'touch $C/told' TERM; LOOP) &"
    loader += "echo $! > $C/loader; "
    saves = "trap 'sleep 0.3; kill -0 $(cat $C/loader) && exit 75' TERM; "
    bench.start(run_of(loader + saves + "touch $C/ready; LOOP"))
    ready(bench)
    loader = pid_in(bench.file("loader"))
    bench.stop()
    assert codes(bench.ended()) == {("worker", 0): (75, None)}
    assert not bench.file("told").exists()
    assert not is_alive(loader)


def test_daemons_of_a_worker_end_with_it(either):
    daemon = "setsid sh -c 'echo $$ > $C/daemon; exec sleep 1000' & "
    either.start(run_of(daemon + "while [ ! -s $C/daemon ]; do sleep 0.01; done; exit 0"))
    assert codes(either.ended()) == {("worker", 0): (0, None)}
    assert not is_alive(pid_in(either.file("daemon")))


def test_the_worker_that_ends_badly_first_is_named_and_the_others_are_stopped(bench):
    text = "if [ $RANK = 1 ]; then sleep 0.1; echo 'it hurts'; exit 3; fi; trap 'exit 4' TERM; LOOP"
    bench.start(run_of(text, member(gpus=(0, 1, 2))))
    ended = bench.ended()
    assert (ended.first.rank, ended.first.code, ended.first.last_line) == (1, 3, "it hurts")
    assert codes(ended)["worker", 1] == (3, None)
    assert {codes(ended)["worker", rank] for rank in (0, 2)} <= {(4, None), (None, signal.SIGTERM)}


def test_workers_that_do_not_stop_for_another_are_killed(bench):
    bench.start(run_of(f"[ $RANK = 1 ] && exit 3; {DEAF}", member(gpus=(0, 1))))
    ended = bench.ended()
    assert codes(ended) == {("worker", 0): (None, signal.SIGKILL), ("worker", 1): (3, None)}
    assert (ended.first.rank, ended.grace_over) == (1, False)


# -- whoever dies --------------------------------------------------------------------------------------------


def test_when_the_shim_is_killed_its_workers_go_and_all_else_is_cleared(either):
    daemon = "setsid sh -c 'echo $$ > $C/daemon; exec sleep 1000' & "
    loader = "(LOOP) & echo $! > $C/loader; "
    either.start(run_of(daemon + loader + f"echo $$ > $C/worker; {DEAF}"))
    either.started()
    pids = [pid_in(either.file(name)) for name in ("daemon", "loader", "worker")]
    kill_shim(either)
    assert either.seen().state is MemberState.LOST
    until(lambda: not is_alive(pids[2]))  # it dies with its shim
    either.kill()
    ended = either.ended()
    assert (ended.lost, ended.started, ended.exits) == (True, True, ())
    assert [pid for pid in pids if is_alive(pid)] == []


def test_what_a_dead_shim_left_is_found_by_what_it_holds(bench):
    """Without cgroups and with another environment it still holds the lock that it inherited."""
    hides = "setsid env -i sh -c 'echo $$ > $0; exec sleep 1000' $C/daemon & "
    bench.start(run_of(hides + DEAF))
    bench.started()
    daemon = pid_in(bench.file("daemon"))
    kill_shim(bench)
    bench.kill()
    assert bench.ended().lost
    assert not is_alive(daemon)


def test_a_shim_ignores_the_signals_of_a_terminal(bench):
    bench.start(run_of(PATIENT))
    ready(bench)
    bench.started()
    shim = json.loads((bench.directory() / "shim.json").read_text())["pid"]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(shim, number)
    assert os.getsid(shim) == shim
    bench.stop()
    assert codes(bench.ended()) == {("worker", 0): (75, None)}


def test_a_worker_killed_from_outside_is_told_apart(bench):
    bench.start(run_of(f"echo $$ > $C/worker; {PATIENT}"))
    os.kill(pid_in(bench.file("worker")), signal.SIGKILL)
    assert bench.ended().first.signal == signal.SIGKILL


# -- several nodes -------------------------------------------------------------------------------------------


def test_members_on_several_nodes_live_by_themselves(bench):
    nodes = member("a", (0, 1), first_rank=0), member("b", (2,), first_rank=2)
    bench.start(run_of(f"[ $RANK = 2 ] && exit 0; {PATIENT}", *nodes))
    assert codes(bench.ended(node="b")) == {("worker", 2): (0, None)}
    assert bench.seen(node="a").state is not MemberState.EXITED
    bench.kill()
    assert set(codes(bench.ended(node="a"))) == {("worker", 0), ("worker", 1)}


def test_odd_names_of_jobs_and_nodes_are_names_of_files(bench):
    key = RunKey("17_0,../x", 1)
    bench.start(run_of("exit 0", member("rack 1/n,0"), key=key))
    assert codes(bench.ended(key, "rack 1/n,0")) == {("worker", 0): (0, None)}
    assert bench.layout.marked() == [MemberKey("17_0,../x", 1, "rack 1/n,0")]


# -- parameter servers ---------------------------------------------------------------------------------------

SERVES = "if [ $TRAINYARD_ROLE = server ]; then trap 'exit 0' TERM; touch $C/serving$RANK; LOOP; fi; "
WAITS = "while [ ! -e $C/serving0 ]; do sleep 0.01; done; "


def test_servers_are_ended_when_all_workers_are_done(bench):
    bench.start(run_of(SERVES + WAITS, member(gpus=(0, 1), servers=1)))
    assert codes(bench.ended()) == {
        ("server", 0): (0, None),
        ("worker", 0): (0, None),
        ("worker", 1): (0, None),
    }


def test_servers_on_other_nodes_wait_for_the_word(bench):
    nodes = member("a", (0,)), member("b", (), servers=1)
    bench.start(run_of(SERVES + WAITS, *nodes))
    assert codes(bench.ended(node="a")) == {("worker", 0): (0, None)}
    until(lambda: bench.seen(node="b").workers_over)
    assert bench.seen(node="b").state is MemberState.RUNNING
    bench.end_servers()
    assert codes(bench.ended(node="b")) == {("server", 0): (0, None)}


def test_a_stop_is_for_workers_and_servers_follow_them(bench):
    text = SERVES + WAITS + f"sleep 0.1; {PATIENT}"
    bench.start(run_of(text, member(gpus=(0,), servers=1)))
    ready(bench)
    bench.stop()
    ended = bench.ended()
    assert codes(ended) == {("server", 0): (0, None), ("worker", 0): (75, None)}
    assert ended.first is None


def test_a_server_that_dies_while_workers_run_ends_the_run(bench):
    bench.start(run_of(f"[ $TRAINYARD_ROLE = server ] && exit 5; {PATIENT}", member(gpus=(0,), servers=1)))
    ended = bench.ended()
    assert (ended.first.role, ended.first.code) == ("server", 5)


def test_how_servers_end_after_the_workers_does_not_matter(bench):
    text = SERVES.replace("exit 0", "exit 9") + WAITS
    bench.start(run_of(text, member(gpus=(0,), servers=1)))
    ended = bench.ended()
    assert (codes(ended), ended.first) == ({("server", 0): (9, None), ("worker", 0): (0, None)}, None)


def test_servers_that_do_not_go_are_killed(bench):
    text = SERVES.replace("'exit 0'", "''") + WAITS
    bench.start(run_of(text, member(gpus=(0,), servers=1)))
    ended = bench.ended()
    assert codes(ended)["server", 0] == (None, signal.SIGKILL)
    assert (ended.first, ended.grace_over) == (None, False)


def test_nothing_is_left_when_a_test_is_over(bench):
    bench.start(run_of(PATIENT))
    ready(bench)
    assert left_of(bench.layout.prefix)
    before = time.monotonic()
    bench.kill()
    bench.ended()
    assert left_of(bench.layout.prefix) == []
    assert time.monotonic() - before < 60


def test_a_shim_whose_directory_is_deleted_ends_with_its_workers(bench):
    bench.start(run_of(f"echo $$ > $C/worker; {PATIENT}"))
    bench.started()
    worker, (shim,) = pid_in(bench.file("worker")), bench.backend._shims
    shutil.rmtree(bench.layout.job("1"))
    os.kill(worker, signal.SIGKILL)
    assert shim.wait(60) == 1
    bench.backend._marked.clear()
