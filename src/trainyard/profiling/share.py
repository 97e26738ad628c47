"""A share of this machine's CPUs for a process group: by affinity, and by a quota if it is a fraction."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator

from trainyard.errors import InputError
from trainyard.profiling.quota import Quota

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class CpuShare:
    """A number of CPUs: 1.5 are two, which may be busy for 1.5 seconds a second."""

    def __init__(self, cpus: float) -> None:
        self.cpus = cpus
        self.numbers = available_cpus()[: math.ceil(cpus)]
        self.quota = Quota(cpus, len(self.numbers))


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
