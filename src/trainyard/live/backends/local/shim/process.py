"""One process of a run, from its fork to its end; and how to find and signal processes."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import time
from typing import Any

from .group import Group
from .log import Log

PR_SET_PDEATHSIG = 1
CANNOT_START = 127
NOT_FOUND = (126, 127)  # what shells exit with if there is no such program
LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    """A worker or a parameter server."""

    def __init__(self, spec: dict[str, Any], pid: int, output: int, log: Log) -> None:
        self.spec = spec
        self.pid = pid
        self.output = output  # the end of a pipe; -1 when it is at its end
        self.log = log
        self.end: dict[str, Any] | None = None

    @property
    def works(self) -> bool:
        """Whether it is a worker, not a server."""
        return bool(self.spec["role"] == "worker")

    def over(self, status: int) -> None:
        """It ended with this status."""
        died = os.WIFSIGNALED(status)
        self.end = {
            "rank": self.spec["rank"],
            "role": self.spec["role"],
            "code": None if died else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if died else None,
            "at": time.time(),
            "launches": self.spec.get("launches", False),
        }

    def ended_first(self) -> dict[str, Any]:
        """Return how it ended, for people: its end is that of the run."""
        assert self.end is not None
        hint = {"hint": path_hint(self.spec)} if self.end["code"] in NOT_FOUND else {}
        return {**self.end, "last_line": self.log.last_line(), **hint}


def become(
    spec: dict[str, Any],
    group: Group,
    output: int,
    says: int,
    alive: int,
    shim: int,
    cpu_set: list[int] | None,
) -> None:
    """In the new process: enter its limits and become the job's program."""
    step = "limits"
    try:
        os.setsid()
        os.set_inheritable(alive, True)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != shim:
            os._exit(CANNOT_START)  # it died before we could ask to die with it
        group.enter()
        if cpu_set:
            pin(0, cpu_set)
        null = os.open(os.devnull, os.O_RDONLY)
        for theirs, ours in ((null, 0), (output, 1), (output, 2)):
            os.dup2(theirs, ours)
        step = "directory"
        os.chdir(spec["cwd"])
        step = "program"
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except BaseException as error:
        os.write(says, json.dumps(_trouble(step, spec, error)).encode())
    os._exit(CANNOT_START)


def _trouble(step: str, spec: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """Say why a process did not become the job's program."""
    code = error.errno if isinstance(error, OSError) else None
    why, hint = os.strerror(code) if code else repr(error), ""
    what = {"program": spec["argv"][0], "directory": spec["cwd"]}.get(step, step)
    if step == "program" and code == errno.ENOENT:
        if os.path.exists(what):
            why = "the interpreter that its first line names is not there"
        else:
            why, hint = "not found", path_hint(spec)
    return {"step": step, "what": what, "why": why, "errno": code, "hint": hint}


def path_hint(spec: dict[str, Any]) -> str:
    """Say where programs were looked for."""
    return f"PATH={spec['env'].get('PATH', '')}"


def descendants(root: int) -> list[int]:
    """Return all processes below one: its children, theirs, and orphans that came back to it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found, look = [], [root]
    while look:
        below = children.get(look.pop(), [])
        found += below
        look += below
    return found


def _parent(pid: str) -> int | None:
    """The parent of a process that lives."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state == b"Z" else int(parent)


def pin(pid: int, cpu_set: list[int]) -> None:
    """Bind a process to CPUs."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, cpu_set)


def kill(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
