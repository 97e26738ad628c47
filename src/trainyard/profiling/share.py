"""A share of this machine's CPUs for a process group, by affinity.

A share of 2 is two CPUs. One of 1.5 is one CPU all of the time and a second one half of the time: the group
may use both in half of every short period. Unlike stopping and continuing, this leaves a single thread alone.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainyard.errors import InputError

PERIOD_S = 0.3  # a CPU that becomes available is found only after some milliseconds
LOOK_S = 1.0  # how often new threads are looked for; they start with what their parents have at the moment
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def available_cpus() -> list[int]:
    """Numbers of the CPUs that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        raise InputError("profiling needs CPU affinity, which this system does not have; run it on Linux")
    return sorted(os.sched_getaffinity(0))


def environment(cpus: float) -> dict[str, str]:
    """Return what tells a script, and the libraries in it, how many CPUs it has."""
    threads = str(math.ceil(cpus))
    return {"TRAINYARD_CPUS": f"{cpus:g}", **dict.fromkeys(THREAD_VARIABLES, threads)}


@contextlib.contextmanager
def on_cpus(numbers: Iterable[int]) -> Iterator[None]:
    """Keep this thread on some CPUs."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, numbers)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


class CpuShare:
    """A number of CPUs, of which the last may be one for part of the time."""

    def __init__(self, cpus: float) -> None:
        self.cpus = cpus
        self.numbers = available_cpus()[: math.ceil(cpus)]
        self._always = self.numbers[: math.floor(cpus)]
        self._part = cpus - math.floor(cpus)
        self._now = self.numbers
        self._threads: list[int] = []
        self._looked_s = -math.inf

    def keep(self, group: int, now_s: float) -> float:
        """Give a group the CPUs that are its own at this moment; return the seconds until they change."""
        if not self._part:
            return math.inf
        at = now_s % PERIOD_S
        with_all = at < self._part * PERIOD_S
        self._set(group, self.numbers if with_all else self._always, now_s)
        return (self._part * PERIOD_S if with_all else PERIOD_S) - at

    def _set(self, group: int, numbers: list[int], now_s: float) -> None:
        if now_s - self._looked_s > LOOK_S:
            self._threads, self._looked_s = _busiest_first(group), now_s
        elif numbers == self._now:
            return
        for place, thread in enumerate(self._threads):
            with contextlib.suppress(OSError):  # it has ended
                # A kernel may take long to find that it has a CPU more: put the busiest threads apart.
                os.sched_setaffinity(thread, [numbers[place % len(numbers)]])
                os.sched_setaffinity(thread, numbers)
        self._now = numbers


def _busiest_first(group: int) -> list[int]:
    times = thread_times(group)
    return sorted(times, key=lambda thread: -times[thread][0])


def thread_times(group: int) -> dict[int, tuple[float, float]]:
    """Return the seconds that each thread of a process group ran, and those that it waited for a CPU."""
    found = {}
    for process, _ in members(group):
        with contextlib.suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{process}/task"):
                found[int(thread)] = _times_of(Path(f"/proc/{process}/task/{thread}/schedstat"))
    return found


def _times_of(counts: Path) -> tuple[float, float]:
    try:
        ran, waited, _ = counts.read_text().split()
    except OSError:  # it has ended, or this kernel does not count
        return 0.0, 0.0
    return int(ran) * 1e-9, int(waited) * 1e-9


def members(group: int) -> list[tuple[int, list[str]]]:
    """Return the processes of a group, with the fields of their `stat` from the third on."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                found.append((int(name), fields))
    return found
