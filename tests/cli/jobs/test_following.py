"""`logs` and `run` against a real controller: output as it comes, attempts, ranks, exit codes, restarts."""

from __future__ import annotations

import json
import os
import pty
import signal

import pytest

from controller_cases import PATIENCE_S, UNTIL, Commands, Controlled, controlled, listens, until


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    yield from controlled(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def run(yard, monkeypatch, capsys):
    return Commands(yard, monkeypatch, capsys)


def shell(script):
    return ["--", "sh", "-c", script]


# -- logs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(yard):
    """A job of two ranks that is over."""
    job = yard.run(
        "submit", "--gpus", "2", *shell("for i in 1 2 3; do echo line $i of $RANK; done; printf end")
    )
    job_id = job.stdout.strip()
    yard.reaches(job_id, "done")
    return job_id


def test_all_output_of_rank_0(run, printed):
    assert run.out("logs", printed) == "line 1 of 0\nline 2 of 0\nline 3 of 0\nend"
    assert run.out("logs", "-f", printed) == "line 1 of 0\nline 2 of 0\nline 3 of 0\nend"


def test_another_rank_and_the_last_lines(run, printed):
    assert run.out("logs", printed, "--rank", "1", "--tail", "2") == "line 3 of 1\nend"
    assert run.out("logs", printed, "--tail", "0") == ""


@pytest.mark.parametrize("option", [[], ["-f"]])
def test_all_ranks_have_their_number_before_each_line(run, printed, option):
    lines = run.out("logs", printed, "--rank", "all", *option).splitlines()
    for rank in "01":
        own = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert own == [f"[{rank}] line {i} of {rank}" for i in (1, 2, 3)] + [f"[{rank}] end"]
    assert len(lines) == 8


def test_output_as_json(run, printed):
    whole = "line 1 of {0}\nline 2 of {0}\nline 3 of {0}\nend"
    pieces = run.json("logs", printed, "--rank", "all", "--json")
    assert pieces == [
        {"job_id": printed, "attempt": 1, "rank": rank, "text": whole.format(rank)} for rank in (0, 1)
    ]
    followed = [json.loads(line) for line in run.out("logs", "-f", printed, "--json").splitlines()]
    assert "".join(piece["text"] for piece in followed) == whole.format(0)
    assert {(piece["job_id"], piece["attempt"], piece["rank"]) for piece in followed} == {(printed, 1, 0)}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("--rank one", "--rank 'one': give a number from 0, or all"),
        ("--rank -1", "--rank '-1': give a number from 0, or all"),
        ("--tail -1", "--tail -1: give 0 or more"),
        ("--attempt 2", "--attempt 2: give a number from 1 to 1"),
        ("--attempt 0", "--attempt 0: give a number from 1 to 1"),
    ],
)
def test_what_there_is_not(run, printed, words, wrong):
    assert run.error("logs", printed, *words.split()) == (2, wrong)


def test_bytes_that_are_no_text_go_through_a_pipe_as_they_are(yard, run):
    job = run.out("submit", *shell(r"printf '\377\033[31m\000\r\n'")).strip()
    yard.reaches(job, "done")
    assert yard.run("logs", job, text=False).stdout == b"\xff\x1b[31m\x00\r\n"


def test_a_terminal_gets_no_control_characters(yard, run):
    job = run.out("submit", *shell(r"printf 'a\033]0;t\007\033[31mred\007\n'")).strip()
    yard.reaches(job, "done")
    ours, theirs = pty.openpty()
    with yard.popen("logs", job, stdout=theirs) as showing:
        os.close(theirs)
        assert showing.wait(PATIENCE_S) == 0
    shown = os.read(ours, 1000)
    os.close(ours)
    assert shown == b"ared\r\n"


def test_output_comes_while_the_job_runs(yard, run):
    job = run.out("submit", *shell(f"echo first; {UNTIL.format('go')}; echo last")).strip()
    with yard.popen("logs", "-f", job) as following:
        assert following.stdout.readline() == "first\n"
        assert yard.job(job)["state"] == "running"
        (yard.folder / "go").touch()
        assert following.communicate(timeout=PATIENCE_S) == ("last\n", "")
    assert following.returncode == 0


def test_a_job_that_has_not_started(yard, run):
    first = run.out("submit", *shell(UNTIL.format("started"))).strip()
    job = run.out("submit", "--after", first, *shell("echo late")).strip()
    assert run("logs", job) == (0, "", f"{job} has not started yet\n")
    assert run("logs", job, "--json") == (0, "[]\n", f"{job} has not started yet\n")
    assert run.error("logs", job, "--attempt", "1") == (
        2,
        "--attempt 1: give none, for it has not started yet",
    )
    with yard.popen("logs", "-f", job) as following:
        (yard.folder / "started").touch()
        assert following.communicate(timeout=PATIENCE_S) == ("late\n", "")


def test_many_lines(yard, run):
    job = run.out("submit", "--", "seq", "200000").strip()
    out = run.out("logs", "-f", job)
    assert out == "".join(f"{i}\n" for i in range(1, 200001))


def test_following_crosses_attempts(yard, run):
    job = run.out("submit", "--retries", "1", *shell("echo try $TRAINYARD_ATTEMPT; exit 3")).strip()
    with yard.popen("logs", "-f", job) as following:
        out, err = following.communicate(timeout=PATIENCE_S)
    assert err == ""
    (node,) = yard.job(job)["attempts"][1]["nodes"]
    assert out in (f"try 1\n--- attempt 2, 1 GPU, {node} ---\ntry 2\n", "try 2\n")  # if it began late
    assert run.out("logs", job, "--attempt", "1") == "try 1\n"
    assert run.out("logs", "-f", job, "--attempt", "1") == "try 1\n"


def test_a_reader_that_goes_away(yard, printed):
    with yard.popen("logs", printed, stderr=None) as showing:
        showing.stdout.close()
        assert showing.wait(PATIENCE_S) == 1


# -- run ------------------------------------------------------------------------------------------


def test_run_prints_what_the_job_prints(yard, run):
    assert run.out("run", "--", "python3", "-c", 'print("hi")') == "hi\n"


@pytest.mark.parametrize(
    ("script", "options", "code", "reason"),
    [
        ("exit 7", [], 7, "exited with 7"),
        ("kill -SEGV $$", [], 128 + signal.SIGSEGV, "died of SIGSEGV"),
        ("exit 127", [], 127, ""),
        ("exit 5", ["--retries", "1"], 5, "exited with 5"),
    ],
)
def test_run_ends_as_the_job_does(yard, script, options, code, reason):
    done = yard.run("run", *options, *shell(f"echo out; {script}"))
    assert done.returncode == code
    assert done.stdout.startswith("out\n")
    last = done.stderr.splitlines()[-1]
    assert " failed: " in last
    assert reason in last


def test_run_retries_in_one_stream(yard):
    done = yard.run("run", "--retries", "1", *shell("printf $TRAINYARD_ATTEMPT; [ $TRAINYARD_ATTEMPT = 2 ]"))
    node = next(iter(yard.job(yard.jobs()[-1]["job_id"])["attempts"][1]["nodes"]))
    assert done.returncode == 0
    assert done.stdout == f"1\n--- attempt 2, 1 GPU, {node} ---\n2"


def test_a_job_that_never_ran(yard, run):
    first = run.out("submit", *shell(UNTIL.format("never"))).strip()
    with yard.popen("run", "--after", first, "--", "echo", "no") as running:
        job = until(lambda: next((j for j in yard.jobs() if j["command"] == ["echo", "no"]), None))
        run.out("cancel", job["job_id"])
        out, err = running.communicate(timeout=PATIENCE_S)
    (yard.folder / "never").touch()
    assert (running.returncode, out) == (1, "")
    assert err.endswith(f"{job['job_id']} cancelled: cancelled by {job['user']}\n")


def test_run_as_json(yard):
    done = yard.run("run", "--json", *shell("echo out; exit 9"))
    assert done.returncode == 9
    job = json.loads(done.stdout)
    assert (job["state"], job["exit_code"]) == ("failed", 9)
    assert done.stderr.startswith("out\n")


def test_ctrl_c_leaves_the_job_running_and_says_so(yard):
    with yard.popen("run", *shell(f"echo begun; {UNTIL.format('calm')}")) as running:
        assert running.stdout.readline() == "begun\n"
        job = yard.jobs()[-1]["job_id"]
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, out) == (130, "")
    assert err == f"job {job} goes on; trainyard logs -f {job} follows it, trainyard cancel {job} ends it\n"
    assert yard.job(job)["state"] == "running"
    (yard.folder / "calm").touch()
    yard.reaches(job, "done")


def test_a_held_job_is_told(yard):
    with yard.popen("run", *shell(f"echo begun; {UNTIL.format('released')}")) as running:
        assert running.stdout.readline() == "begun\n"
        job = yard.jobs()[-1]["job_id"]
        yard.ask(f"/jobs/{job}/hold", {})
        assert running.stderr.readline().startswith(f"{job} held")
        yard.ask(f"/jobs/{job}/release", {})
        (yard.folder / "released").touch()
        running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0


# -- over restarts of the controller --------------------------------------------------------------


@pytest.mark.parametrize("verb", ["logs", "run", "wait"])
def test_following_survives_a_killed_controller(tmp_path, verb):
    own = Controlled(tmp_path)
    try:
        script = shell(f"echo one; {UNTIL.format('two')}; echo two")
        if verb == "run":
            following = own.popen("run", *script)
        else:
            own.run("submit", *script)
            following = own.popen(*([verb, "-f", "1"] if verb == "logs" else [verb, "1"]))
        with following:
            if verb != "wait":
                assert following.stdout.readline() == "one\n"
            own.reaches("1", "running")
            listens(following)
            own.kill()
            lost = following.stderr.readline()
            assert lost.startswith("no controller answers at http://127.0.0.1:")
            assert lost.endswith("; trying again for 120 s\n")
            (tmp_path / "two").touch()
            own.start()
            out, err = following.communicate(timeout=PATIENCE_S)
        assert (following.returncode, out, err) == (0, "" if verb == "wait" else "two\n", "")
    finally:
        own.close()
