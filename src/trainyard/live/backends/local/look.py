"""What can be seen of one member: who holds its lock, how it ended, whether anything of it still runs."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import struct
from collections.abc import Collection
from math import inf, isfinite
from pathlib import Path
from typing import Any

from trainyard.live.backends.base import Ended, Exit, MemberState, Progress, Seen
from trainyard.live.backends.local.layout import read_json

FLOCK = "hhqqi4x"
GB = 10**9
MOST_PROGRESS = 65536  # bytes
COUNTED = ("samples_done", "samples_total", "samples_per_s", "samples_saved")
GONE_FOR_GOOD = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC, errno.ENAMETOOLONG, errno.ELOOP)


def is_held(lock: str | Path) -> bool:
    """Whether a shim or one of its workers holds this lock; asking takes it from nobody."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
        return bool(struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(descriptor)


def is_there(path: str) -> bool:
    """Whether there is such a file; a disk that does not answer raises, for that is no answer."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def seen(directory: str) -> Seen:
    """Look at one member that was told to start.

    The order matters: a shim writes `begun` after it has the lock, and its report before it gives it up.
    Names are plain texts: everything that runs is looked at all the time.
    """
    begun = is_there(f"{directory}/begun")
    held = is_held(f"{directory}/lock")
    if is_there(f"{directory}/exit.json"):
        report = read_json(Path(directory, "exit.json"))
        if report is not None:
            return Seen(MemberState.EXITED, ended_of(report))
    if not held:
        return Seen(MemberState.LOST if begun else MemberState.ABSENT)
    if not is_there(f"{directory}/shim.json"):
        return Seen(MemberState.PENDING)
    first = read_json(Path(directory, "first.json")) if is_there(f"{directory}/first.json") else None
    over = is_there(f"{directory}/workers.json")
    return Seen(MemberState.RUNNING, workers_over=over, first=_exit(first) if first else None)


def ended_of(report: dict[str, Any]) -> Ended:
    """Read the report of a shim."""
    error, first, memory = report.get("error") or {}, report.get("first"), report.get("memory", ())
    asked_for = error.get("step") in ("program", "directory")
    return Ended(
        tuple(_exit(end) for end in report["processes"] if end is not None),
        None if first is None else _exit(first),
        report["started"],
        why=f"{error['what']}: {error['why']}" if error else "",
        hint=error.get("hint", ""),
        final=asked_for and error["errno"] in GONE_FOR_GOOD,
        out_of_memory=report["oom_kills"] > 0,
        memory_gb=(memory[0] / GB, memory[1] / GB) if len(memory) == 2 else None,
        grace_over=report.get("grace_over", False),
        grace_s=report.get("grace_s", 0.0),
        stop_asked=report.get("stop_asked", False),
        lost=report.get("lost", False),
    )


def _exit(end: dict[str, Any]) -> Exit:
    last_line, launches = end.get("last_line", ""), end.get("launches", False)
    ended = end["rank"], end["role"], end["code"], end["signal"], end["at"]
    return Exit(*ended, last_line, launches, end.get("hint", ""))


def progress_of(path: Path) -> Progress | None:
    """Read what a job says of itself; None if that is nothing that can be understood, whatever lies there."""
    try:
        # Whoever opens a pipe would wait for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_PROGRESS:
                return None
            said = json.loads(file.read(MOST_PROGRESS))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    numbers = {name: _number(said.get(name), 0.0) for name in COUNTED}
    loss = _number(said.get("loss"), -inf)
    return Progress(about.st_mtime, finished=said.get("finished") is True, loss=loss, **numbers)


def _number(value: object, least: float) -> float | None:
    """A number as jobs may write it; anything else says nothing."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and number >= least else None


class Leftovers:
    """Processes of a member whose shim is gone.

    They are in its cgroups, have its name in their environment, or hold the lock that they inherited.
    """

    def __init__(self, name: str, directory: Path, groups: Collection[Path]) -> None:
        self._needle = f"\0TRAINYARD_RUN={name}\0".encode()
        self._alive = directory / "alive"
        self._groups = groups

    def kill(self) -> bool:
        """Kill whatever is there; whether there was nothing, for certain."""
        found = [pid for pid in os.listdir("/proc") if pid.isdigit() and self._has(pid)]
        for pid in found:
            self._kill(pid)
        return not found and not is_held(self._alive)

    def _kill(self, pid: str) -> None:
        """Kill one process, and none that has got its number meanwhile."""
        try:
            handle = os.pidfd_open(int(pid))
        except OSError:
            return
        try:
            if self._has(pid):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)

    def _has(self, pid: str) -> bool:
        if int(pid) == os.getpid() or _is_zombie(pid):
            return False
        if any(pid in _words(group / "cgroup.procs") for group in self._groups):
            return True
        environment = b"\0" + _bytes(Path(f"/proc/{pid}/environ")) + b"\0"
        return self._needle in environment or self._holds(pid)

    def _holds(self, pid: str) -> bool:
        folder = f"/proc/{pid}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            return False
        return any(_link(f"{folder}/{number}") == str(self._alive) for number in numbers)


def _is_zombie(pid: str) -> bool:
    return _bytes(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"], [])


def _words(path: Path) -> list[str]:
    return _bytes(path).decode("ascii", "replace").split()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
