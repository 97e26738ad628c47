"""A quota of CPU time for a process group, as the kernel enforces one for Slurm and Kubernetes.

A group with 1.5 CPUs may run on two, and use 1.5 CPU seconds a second. What it has left is its budget: at
zero all of it is stopped, until the budget is full again. The kernel's own quotas work alike, but few users
may set them.

    budget <- budget + cpus x elapsed - used

Full is what makes one turn of on and off last a period when all n CPUs are busy:

    full / (n - cpus) + full / cpus = period
"""

from __future__ import annotations

import contextlib
import math
import os
import signal

from trainyard.profiling.processes import cpu_s, members

PERIOD_S = 0.1  # the kernel's
LEAST_WAIT_S = 0.001
LOOK_S = 0.5  # how often new processes are looked for
MOST_DEBT_S = 1.0  # that they can run up until then


class Quota:
    """Stops and continues a group so that it uses, of n CPUs, no more than some."""

    def __init__(self, cpus: float, n: int) -> None:
        self._cpus, self._spare = cpus, n - cpus
        self._full_s = self._budget_s = PERIOD_S * cpus * self._spare / n
        self.stopped = False
        self._used_s: dict[int, float] = {}  # by process
        self._now_s: float | None = None
        self._looked_s = -math.inf

    def keep(self, group: int, now_s: float) -> float:
        """Stop or continue the group if it is time; return the seconds until it may be again."""
        if self._spare <= 0:
            return math.inf
        self._account(group, now_s)
        if self.stopped and self._budget_s >= self._full_s:
            self._switch(group, stop=False)
        elif not self.stopped and self._budget_s <= 0:
            self._switch(group, stop=True)
        if self.stopped:
            return max(LEAST_WAIT_S, (self._full_s - self._budget_s) / self._cpus)
        return max(LEAST_WAIT_S, self._budget_s / self._spare)

    def pause(self, group: int, now_s: float) -> None:
        """Let the budget stay as it is while the group is stopped from outside."""
        if self._spare > 0:
            self._account(group, now_s)
            self._now_s = None

    def _account(self, group: int, now_s: float) -> None:
        if now_s - self._looked_s > LOOK_S:
            self._looked_s = now_s
            self._used_s = {process: self._used_s.get(process, 0.0) for process, _ in members(group)}
        elapsed, self._now_s = now_s - (now_s if self._now_s is None else self._now_s), now_s
        # What a running group leaves is lost to it, but not what it could not use because this came late.
        most = PERIOD_S * self._cpus if self.stopped else self._full_s
        left = self._budget_s + self._cpus * elapsed - self._used()
        self._budget_s = max(-MOST_DEBT_S, min(most, left))

    def _used(self) -> float:
        """CPU seconds since this was last asked for."""
        used = 0.0
        for process, before in self._used_s.items():
            now = cpu_s(process)
            if now is not None:
                used += now - before
                self._used_s[process] = now
        return used

    def _switch(self, group: int, *, stop: bool) -> None:
        self.stopped = stop
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(group, signal.SIGSTOP if stop else signal.SIGCONT)
