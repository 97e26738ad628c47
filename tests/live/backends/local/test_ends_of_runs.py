"""How a run can end, for real: every row of the table, through controller, store, shim and processes."""

from __future__ import annotations

import re
import signal
import stat
from dataclasses import dataclass, field
from typing import Any

import pytest

from trainyard.core.events import DecisionsPaused, DecisionsResumed
from world_cases import World, nodes

ONCE = "[ $TRAINYARD_ATTEMPT = 1 ] || exit 0; "  # only the first attempt ends in the way of the row
READY = "touch $C/ready; LOOP"
LIST = "a list that is executed as it is: "


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("ends"), nodes(gpus=4)) as made:
        yield made


@dataclass
class Row:
    """One way to end: what becomes of the job, why, and whether that took one of its retries."""

    name: str
    command: Any
    then: str  # done, failed, or again: it was started again and ended well
    code: str = ""
    text: str = ""  # a pattern
    counted: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    exit_signal: int | None = None


def crash(number):
    name = signal.Signals(number).name
    text = f"rank 0 on n0 died of {name} after .* s; logs .*"
    return Row(
        f"{name}, no retries left", f"kill -{number} $$", "failed", "crash", text, True, {}, None, number
    )


def killed(number):
    name = signal.Signals(number).name
    text = f"rank 0 on n0 was killed by {name} from outside after .* s; logs .*"
    return Row(f"{name} from outside", ONCE + f"kill -{number} $$", "again", "killed", text)


WITHOUT_A_STOP = [
    Row("all workers 0", "exit 0", "done", exit_code=0),
    Row(
        "75 without a stop",
        ONCE + "exit 75",
        "again",
        "saved_itself",
        "rank 0 on n0 exited with 75 after .*",
    ),
    Row(
        "other code, retries left",
        ONCE + "echo ' it hurts '; echo; exit 3",
        "again",
        "exit",
        r"rank 0 on n0 exited with 3 after [\d.]+ s; last line: it hurts; logs \d+",
        True,
        {"retries": 1},
    ),
    Row(
        "other code, no retries left",
        "echo it hurts >&2; exit 3",
        "failed",
        "exit",
        r"rank 0 on n0 exited with 3 after [\d.]+ s; last line: it hurts; logs \d+",
        True,
        exit_code=3,
    ),
    Row(
        "another rank",
        "[ $RANK = 1 ] && exit 3; LOOP",
        "failed",
        "exit",
        r"rank 1 on n0 exited with 3 after [\d.]+ s; logs \d+ --rank 1",
        True,
        {"gpus": 2},
        exit_code=3,
    ),
    Row(
        "a code in transient_exit_codes",
        ONCE + "exit 9",
        "again",
        "transient",
        "rank 0 on n0 exited with 9 after .*",
        more={"transient_exit_codes": (8, 9)},
    ),
    Row(
        "127: no such program in a text",
        "no-such-program --lr 1",
        "failed",
        "cannot_start",
        r"/bin/sh: 1: no-such-program: not found on n0 \(PATH=/opt/x:/bin\)",
        more={"env": {"PATH": "/opt/x:/bin"}, "retries": 5},
        exit_code=127,
    ),
    Row(
        "126: a file that is no program",
        "/etc/passwd",
        "failed",
        "cannot_start",
        r"/bin/sh: 1: /etc/passwd: Permission denied on n0 \(PATH=.*\)",
        more={"retries": 5},
        exit_code=126,
    ),
    Row(
        LIST + "no such program",
        ["no-such-program", "--lr", "1"],
        "failed",
        "cannot_start",
        r"no-such-program: not found on n0 \(PATH=/opt/x:/bin\)",
        more={"env": {"PATH": "/opt/x:/bin"}, "retries": 5},
    ),
    Row(
        LIST + "a file that is no program",
        ["/etc/passwd"],
        "failed",
        "cannot_start",
        "/etc/passwd: Permission denied on n0",
        more={"retries": 5},
    ),
    Row(
        "no such directory",
        "exit 0",
        "failed",
        "cannot_start",
        "/no/such/directory: No such file or directory on n0",
        more={"workdir": "/no/such/directory", "retries": 5},
    ),
    *map(crash, (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS)),
    Row(
        "a crash, retries left",
        ONCE + "kill -SEGV $$",
        "again",
        "crash",
        "rank 0 on n0 died of SIGSEGV after .*",
        True,
        {"retries": 1},
    ),
    *map(killed, (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
]


def check(world, job_id, row):
    """See that a run ended as its row says, and that the job is what it should be."""
    view = world.until(job_id, "done" if row.then == "again" else row.then)
    first = world.attempts(job_id)[0]
    assert (first["code"], bool(re.fullmatch(row.text, first["text"]))) == (row.code, True), first["text"]
    used = 1 if row.counted and row.then == "again" else 0
    assert (view["attempt"], view["retries_used"]) == (2 if row.then == "again" else 1, used)
    if row.then == "failed":
        assert (view["reason_code"], view["reason"]) == (first["code"], first["text"])
        assert (view["exit_code"], view["exit_signal"]) == (row.exit_code, row.exit_signal)
    else:
        assert (view["reason_code"], view["reason"], view["exit_code"]) == ("", "", 0)
    if row.then == "again":
        counted = "counted" if row.counted else "not counted"
        assert any(f"({row.code}, {counted})" in line for line in world.story(job_id))


@pytest.mark.parametrize("row", WITHOUT_A_STOP, ids=lambda row: row.name)
def test_an_end_without_a_stop(world, row):
    check(world, world.submit(row.command, **row.more), row)


def test_a_script_without_its_interpreter_cannot_start(world, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("#!/no/such/python\n")
    script.chmod(stat.S_IRWXU)
    view = world.until(world.submit([str(script)]), "failed")
    why = "the interpreter that its first line names is not there on n0"
    assert (view["reason_code"], view["reason"]) == ("cannot_start", f"{script}: {why}")


# -- after a stop --------------------------------------------------------------------------------------------


@dataclass
class Stop:
    """One way to end after a stop was asked."""

    name: str
    on_term: str  # what the worker does when it is told to stop
    code: str
    text: str
    then: str = "waiting"
    before: str = ""
    more: dict[str, Any] = field(default_factory=dict)


FINISHED = """printf '{"samples_done": 5, "finished": true}' > $TRAINYARD_PROGRESS; exit 0"""
ALL_DONE = """printf '{"samples_done": 5, "samples_total": 5}' > $TRAINYARD_PROGRESS; exit 0"""
SHORT = {"grace_s": 0.2}
AFTER_A_STOP = [
    Stop("0, and it said that it is finished", FINISHED, "", "", "done"),
    Stop("0, and all samples are done", ALL_DONE, "", "", "done"),
    Stop("0, nothing said", "exit 0", "stopped", "exited 0 after a stop; started again"),
    Stop("75", "exit 75", "saved", ""),
    Stop("some 75, rest 0", "exit $((RANK ? 0 : 75))", "saved", "", more={"gpus": 2}),
    Stop(
        "it dies of the stop signal",
        "trap - TERM; kill -TERM $$",
        "not_saved",
        "it died of the stop signal without saving; back to the start",
    ),
    Stop(
        "it does not stop in time",
        ":",
        "not_saved",
        "0.2 s were not enough; back to the start",
        more={"grace_s": 0.2},
    ),
    Stop("it fails", "exit 4", "exit", "rank 0 on n0 exited with 4 after .*", "failed"),
    Stop(
        "it fails, retries left", "exit 4", "exit", "rank 0 on n0 exited with 4 after .*", more={"retries": 1}
    ),
]


@pytest.mark.parametrize("row", AFTER_A_STOP, ids=lambda row: row.name)
def test_an_end_after_a_stop(world, row):
    told = f"told() {{ {row.on_term}; }}; trap told TERM; "
    job = world.submit(f"{ONCE}{told}touch $C/ready$RANK; LOOP", **row.more)
    for rank in range(row.more.get("gpus", 1)):
        world.ready(job, f"ready{rank}")
    world.until(job, "running")
    world.tell(DecisionsPaused, stop=True)
    try:
        view = world.until(job, row.then)
    finally:
        world.tell(DecisionsResumed)
    assert view["reason_code"] == row.code
    assert re.fullmatch(row.text, view["reason"]), view["reason"]
    if row.then == "waiting":
        view = world.until(job, "done")
        assert (view["attempt"], view["retries_used"]) == (2, int(row.code == "exit"))
