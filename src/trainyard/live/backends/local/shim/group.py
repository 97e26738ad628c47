"""The cgroups of a run: limits of CPUs and memory, and a list of all its processes."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

PERIOD_US = 100_000  # of CPU quotas
LEAST_QUOTA_US = 1_000  # the kernel takes no less


class Group:
    """The cgroups of one run, where the system allows them: limits, and a list of all its processes."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self.version: int = limits.get("version", 0)
        self.paths: dict[str, str] = limits.get("paths", {})  # by controller; v2 has one, called "all"
        for path in self.paths.values():
            os.makedirs(path, exist_ok=True)

    def enter(self) -> None:
        """Put the calling process into the groups; OSError if it would run without limits."""
        for path in self.paths.values():
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
                file.write("0")

    def share(self, cpus: float | None, memory_bytes: int | None) -> None:
        """Set how much of the machine all processes together get."""
        quota = -1 if cpus is None else max(int(cpus * PERIOD_US), LEAST_QUOTA_US)
        if self.version == 2:
            _put(f"{self.paths['all']}/cpu.max", f"{'max' if quota < 0 else quota} {PERIOD_US}")
            _put(f"{self.paths['all']}/memory.max", "max" if memory_bytes is None else str(memory_bytes))
            return
        if "cpu" in self.paths:
            _put(f"{self.paths['cpu']}/cpu.cfs_period_us", str(PERIOD_US))
            _put(f"{self.paths['cpu']}/cpu.cfs_quota_us", str(quota))
        if "memory" in self.paths:
            most = -1 if memory_bytes is None else memory_bytes
            _put(f"{self.paths['memory']}/memory.limit_in_bytes", str(most))

    def oom_kills(self) -> int:
        """Return how many processes died for lack of memory."""
        for name, file in (("memory", "memory.oom_control"), ("all", "memory.events")):
            for line in _lines(f"{self.paths[name]}/{file}") if name in self.paths else ():
                word, _, number = line.partition(" ")
                if word == "oom_kill":
                    return int(number)
        return 0

    def memory(self) -> list[int]:
        """Return the most bytes that were in use, and the limit; nothing where that is not known."""
        v1, v2 = ("memory.max_usage_in_bytes", "memory.limit_in_bytes"), ("memory.peak", "memory.max")
        for name, files in (("memory", v1), ("all", v2)):
            if name in self.paths:
                found = [_lines(f"{self.paths[name]}/{file}") for file in files]
                return [int(lines[0]) for lines in found if lines and lines[0].isdigit()]
        return []

    def processes(self) -> list[int]:
        """Return all processes in the groups; those that cannot be seen from here are shown as 0."""
        pids = {int(line) for path in self.paths.values() for line in _lines(f"{path}/cgroup.procs")}
        return sorted(pids - {0})

    def remove(self) -> None:
        """Take the groups away; they are empty."""
        for path in self.paths.values():
            for _ in range(50):  # a process that was just reaped may count for a moment
                try:
                    os.rmdir(path)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)


def _put(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        print(f"shim: {path}: {error.strerror}", file=sys.stderr)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().splitlines()
    except OSError:
        return []
