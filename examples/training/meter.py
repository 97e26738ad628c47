"""The one line that the profiler needs: how many samples a second, printed about twice a second."""

from __future__ import annotations

import os
import time

EVERY_S = 0.5


class Meter:
    """Counts samples and prints the speed since the last time."""

    def __init__(self) -> None:
        self._samples, self._since = 0, time.perf_counter()

    def add(self, samples: int) -> None:
        """Count the samples of a step."""
        self._samples += samples
        took = time.perf_counter() - self._since
        if took >= EVERY_S:
            print(f"{self._samples / took:.1f} samples/s", flush=True)
            self._samples, self._since = 0, time.perf_counter()


def cpus() -> int:
    """CPUs to use: as many as the profiler (or the scheduler) gives, else all there are."""
    return -int(-float(os.environ.get("TRAINYARD_CPUS", os.cpu_count() or 1)) // 1)
