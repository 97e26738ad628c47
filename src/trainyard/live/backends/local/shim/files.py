"""The files of a run: each is written whole or not at all; locks say who lives."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import sys
from typing import Any


def begins() -> bool:
    """Say that a run begins here; False if one did before."""
    try:
        os.close(os.open("begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


def take_lock(path: str) -> int | None:
    """Take a lock; None if somebody has it. It goes with the last process that has its descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return descriptor


def wrote(name: str, content: object) -> bool:
    """Write a file whole or not at all, and so that it survives a power cut; False if there is no room."""
    fresh = f".{name}.{os.getpid()}"
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, name)
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        print(f"shim: {name}: {error.strerror}", file=sys.stderr)
        return False
    return True


def notify(run: dict[str, Any]) -> None:
    """Tell a controller, if one listens, to look at this run; it looks now and then anyway."""
    try:
        pipe = os.open(run["notify"], os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.write(pipe, run["name"].encode() + b"\n")
    except OSError:
        pass
    finally:
        os.close(pipe)


def read_json(path: str) -> dict[str, Any] | None:
    """Read a file; None if it is not there or not whole."""
    try:
        with open(path, encoding="utf-8") as file:
            content: dict[str, Any] = json.load(file)
            return content
    except (OSError, ValueError):
        return None
