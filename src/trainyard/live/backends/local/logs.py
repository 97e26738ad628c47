"""Reading the output of a process, also while it is written and its file is changed for a new one."""

from __future__ import annotations

from pathlib import Path

MOST = 1 << 18  # bytes that are read at once


def read_log(path: Path, offset: int) -> tuple[int, bytes]:
    """Return some output from an offset that counts all output there ever was, and the offset after it.

    Where output was dropped because the log was full, reading goes on with what is there; the log says so.
    """
    for _ in range(5):  # the file may be changed while it is read
        before, older = _before(path), path.with_name(f"{path.name}.1")
        # While it is changed its name is free, and what it has is in the older half already.
        first = before - _size(older) if path.exists() else before
        start = max(offset, first)
        there = path.exists() and start >= before
        data = _piece(path, start - before) if there else _piece(older, start - first)
        if _before(path) == before and (data or path.exists()):
            return start + len(data), data
    return offset, b""


def tail_offset(path: Path, lines: int) -> int:
    """Return the offset at which the last lines begin, as far as they are there."""
    end = at = _before(path) + _size(path)
    first, found = end - _size(path) - _size(path.with_name(f"{path.name}.1")), 0
    while at > first:
        start = max(at - MOST, first)
        data = _between(path, start, at)
        # The end of the last line begins no other one.
        place = len(data) - 1 if at == end else len(data)
        while (place := data.rfind(b"\n", 0, max(place, 0))) >= 0:
            found += 1
            if found == lines:
                return start + place + 1
        at = start
    return first if lines else end


def _between(path: Path, start: int, end: int) -> bytes:
    """Return the output between two offsets, as far as it is still there."""
    found = b""
    while start < end:
        start, data = read_log(path, start)
        if not data:
            break
        found += data[: len(data) - max(start - end, 0)]
    return found


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
