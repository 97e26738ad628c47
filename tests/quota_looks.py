"""When a quota looked at its group: what tests of real processes allow for on a busy machine."""

from __future__ import annotations

from trainyard.profiling.quota import Quota
from trainyard.profiling.script import LOOK_S


class Looks:
    """Seconds that the quota of some CPUs watched its group, kept it stopped, and came late to look."""

    def __init__(self, monkeypatch, cpus):
        self.seconds = self.stopped_s = self.late_s = 0.0
        self._cpus, self._last_s, self._due_s = cpus, None, 0.0
        keep, pause = Quota.keep, Quota.pause

        def kept(quota, group, now_s):
            was_stopped = quota.stopped
            wait_s = keep(quota, group, now_s)
            self._note(quota, now_s, was_stopped)
            self._due_s = now_s + min(wait_s, LOOK_S) if quota._cpus == cpus else self._due_s
            return wait_s

        def paused(quota, group, now_s):
            pause(quota, group, now_s)
            self._note(quota, now_s, quota.stopped)
            self._last_s = None if quota._cpus == cpus else self._last_s

        monkeypatch.setattr(Quota, "keep", kept)
        monkeypatch.setattr(Quota, "pause", paused)

    def _note(self, quota, now_s, stopped):
        if quota._cpus != self._cpus:
            return
        if self._last_s is not None:
            self.seconds += now_s - self._last_s
            self.stopped_s += stopped * (now_s - self._last_s)
            self.late_s += max(0.0, now_s - self._due_s)
        self._last_s = now_s
