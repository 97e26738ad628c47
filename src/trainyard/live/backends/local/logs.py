"""Reading the output of a process, also while it is written and its file is changed for a new one."""

from __future__ import annotations

from pathlib import Path

MOST = 1 << 18  # bytes that are read at once


def read_log(path: Path, offset: int) -> bytes:
    """Return some output from an offset that counts all output there ever was; nothing at the end.

    What was dropped because the log was full is left out: reading goes on with what is there.
    """
    for _ in range(3):  # the file may be changed while it is read
        before = _before(path)
        older = _size(path.with_name(f"{path.name}.1")) if before else 0
        if offset >= before:
            data = _piece(path, offset - before)
        else:
            data = _piece(path.with_name(f"{path.name}.1"), max(offset - (before - older), 0))
        if _before(path) == before:
            return data
    return b""


def first_offset(path: Path) -> int:
    """Return the offset of the oldest output that is still there."""
    before = _before(path)
    return before - _size(path.with_name(f"{path.name}.1")) if before else 0


def end_offset(path: Path) -> int:
    """Return the offset of the end."""
    return _before(path) + _size(path)


def _before(path: Path) -> int:
    try:
        return int(path.with_name(f"{path.name}.at").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _piece(path: Path, start: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(MOST)
    except FileNotFoundError:
        return b""
