"""What the kernel tells of a process group: its members, and the CPU time they used."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def members(group: int) -> list[tuple[int, list[str]]]:
    """Return the processes of a group, with the fields of their `stat` from the third on."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                found.append((int(name), fields))
    return found


def thread_times(group: int) -> dict[int, tuple[float, float]]:
    """Return the seconds that each thread of a process group ran, and those that it waited for a CPU."""
    found = {}
    for process, _ in members(group):
        with contextlib.suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{process}/task"):
                found[int(thread)] = _times_of(Path(f"/proc/{process}/task/{thread}/schedstat"))
    return found


def cpu_s(process: int) -> float | None:
    """CPU seconds of a process with all its threads, to the nanosecond; None if it has ended."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # as clock_getcpuclockid() makes it
    except OSError:
        return None


def _times_of(counts: Path) -> tuple[float, float]:
    try:
        ran, waited, _ = counts.read_text().split()
    except OSError:  # it has ended, or this kernel does not count
        return 0.0, 0.0
    return int(ran) * 1e-9, int(waited) * 1e-9
