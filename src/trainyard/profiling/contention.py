"""How much of its speed a process group lost to other programs on the same CPUs.

The kernel counts the seconds that each thread ran, and those that it was ready but had to wait. Waiting for
one another is no loss, and a thread that mostly sleeps loses nothing that matters. In a window of time, with
everything in CPU seconds,

    could have = min( CPUs x window, ran + waited, ran + ran by others )
    lost       = min( 1 - ran / could have, largest part of the window that a busy thread waited )
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainyard.profiling.processes import members, thread_times

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = 0.5  # of the time
Times = Mapping[int, tuple[float, float]]  # thread: seconds it ran, seconds it waited


class Usage(NamedTuple):
    """What was used up to a moment."""

    at_s: float
    ran_s: float  # by the group
    all_s: float  # by all, on its CPUs
    threads: Times


def usage(group: int, cpus: Sequence[int]) -> Usage:
    """Look at a group and its CPUs."""
    return Usage(time.monotonic(), _group_s(group), _busy_s(cpus), thread_times(group))


def lost_share(before: Usage, after: Usage, cpus: float) -> float:
    """Share of a group's speed that other programs took between two looks."""
    window = after.at_s - before.at_s
    ran = after.ran_s - before.ran_s
    others = max(0.0, after.all_s - before.all_s - ran)
    times = [_since(before.threads.get(thread), now) for thread, now in after.threads.items()]
    busy = [waited for did_run, waited in times if did_run + waited >= BUSY * window]
    could = min(cpus * window, ran + sum(waited for _, waited in times), ran + others)
    if not busy or ran <= 0 or could <= ran:
        return 0.0
    return min(1 - ran / could, max(busy) / window)


def _since(before: tuple[float, float] | None, now: tuple[float, float]) -> tuple[float, float]:
    return (now[0] - before[0], now[1] - before[1]) if before else now


def _group_s(group: int) -> float:
    """CPU seconds of a group, with children that have ended."""
    return sum(sum(map(int, fields[11:15])) for _, fields in members(group)) / TICKS


def _busy_s(cpus: Sequence[int]) -> float:
    """Seconds that these CPUs were busy since the machine started, for whomever."""
    wanted, total = {f"cpu{number}" for number in cpus}, 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *counts = line.split()
        if name in wanted:
            user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, counts[:8])
            total += user + nice + system + interrupts + soft + stolen
    return total / TICKS
