"""How fast a CPU is at the moment: what a tiny loop gets done in a millisecond of CPU time.

CPUs of a virtual machine, and those that share a core, are slower while their neighbours work, and no counter
of the kernel shows it. What is measured in such a moment does not count if there are better ones.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from trainyard.profiling.share import on_cpus

EVERY_S = 0.1
PROBE_S = 0.001
FULL = 0.8  # of the best pace so far; single looks differ by about a tenth


class Pace:
    """Looks at some CPUs in turn, and remembers the best mean of several looks."""

    def __init__(self) -> None:
        self.best = 0.0
        self._seen: list[float] = []
        self._looks, self._looked_s = 0, 0.0

    def look(self, cpus: Sequence[int]) -> None:
        """Take the pace of one of these CPUs, if it is time."""
        if time.monotonic() - self._looked_s < EVERY_S:
            return
        with contextlib.suppress(OSError), on_cpus([cpus[self._looks % len(cpus)]]):  # it may have gone
            self._seen.append(_pace())
        self._looks, self._looked_s = self._looks + 1, time.monotonic()

    def since_last(self) -> float:
        """Return the mean pace since this was last asked for, or the last one known."""
        mean = sum(self._seen) / len(self._seen) if self._seen else self.best
        self._seen = self._seen[-1:]
        self.best = max(self.best, mean)
        return mean


def _pace() -> float:
    began, rounds = time.thread_time(), 0
    while (took := time.thread_time() - began) < PROBE_S:
        for _ in range(100):
            pass
        rounds += 1
    return rounds / took
