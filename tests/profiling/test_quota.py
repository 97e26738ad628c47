"""A quota: a group uses no more CPU time than it may, and no less if it wants it."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from quota_looks import Looks
from trainyard.profiling import quota
from trainyard.profiling.contention import usage
from trainyard.profiling.quota import PERIOD_S, Quota
from trainyard.profiling.script import Script
from trainyard.profiling.share import CpuShare

BURN = "import os\nprint('go')\nos.fork()\nwhile True: pass"


SLACK_S = 0.1  # the CPU clocks of others are rounded, and the first look comes after the start


def used_s(group):
    return usage(group, []).ran_s


class Group:
    """A process that keeps some CPUs busy, or a part of each, unless it is stopped."""

    def __init__(self, monkeypatch, busy):
        self.busy, self.now_s, self.used_s, self.stops, self.stopped = busy, 0.0, 0.0, [], False
        monkeypatch.setattr(quota, "members", lambda group: [(7, [])])
        monkeypatch.setattr(quota, "cpu_s", lambda process: self.used_s)
        monkeypatch.setattr(os, "killpg", self._signal)

    def _signal(self, group, number):
        assert self.stopped == (number == signal.SIGCONT)
        self.stopped = number == signal.SIGSTOP
        self.stops.append((self.now_s, self.stopped))

    def live(self, kept, seconds, late=lambda: 0.0):
        """Ask the quota when it wants to be asked, or somewhat later."""
        until = self.now_s + seconds
        while self.now_s < until:
            passed = min(kept.keep(1, self.now_s), 0.2) + late()
            self.now_s += passed
            self.used_s += 0.0 if self.stopped else self.busy * passed


@pytest.mark.parametrize(("cpus", "n"), [(1.5, 2), (0.25, 1), (2.25, 3), (3.9, 4)])
def test_a_busy_group_uses_what_it_may(monkeypatch, cpus, n):
    group = Group(monkeypatch, n)
    group.live(Quota(cpus, n), 10.0)
    assert group.used_s == pytest.approx(cpus * group.now_s, rel=0.01)
    assert len(group.stops) / 2 == pytest.approx(10 / PERIOD_S, rel=0.2)


def test_the_turns_are_those_of_the_kernel(monkeypatch):
    group = Group(monkeypatch, 2)
    group.live(Quota(1.5, 2), 0.25)
    times, stopped = zip(*group.stops, strict=True)
    assert times == pytest.approx((0.075, 0.1, 0.175, 0.2), abs=0.003)
    assert stopped == (True, False, True, False)


@pytest.mark.parametrize("late_s", [0.005, 0.03])
def test_coming_late_changes_nothing(monkeypatch, late_s):
    group = Group(monkeypatch, 2)
    group.live(Quota(1.5, 2), 10.0, late=lambda: late_s)
    assert group.used_s == pytest.approx(1.5 * group.now_s, rel=0.02)


def test_who_uses_less_is_left_alone(monkeypatch):
    group, kept = Group(monkeypatch, 1.4), Quota(1.5, 2)
    group.live(kept, 10.0)
    assert group.stops == []
    group.busy, before = 2, group.used_s  # and has saved nothing up
    group.live(kept, 1.0)
    assert group.used_s - before == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_pause_saves_nothing_up(monkeypatch, stopped):
    group, kept = Group(monkeypatch, 2), Quota(1.5, 2)
    group.live(kept, 1.0)
    while group.stopped != stopped:
        group.live(kept, 0.001)
    kept.pause(1, group.now_s)
    group.now_s += 5.0
    assert kept.stopped is stopped
    before = group.used_s
    group.live(kept, 1.0)
    assert group.used_s - before == pytest.approx(1.5, rel=0.06)


def test_whole_cpus_need_no_quota(monkeypatch):
    group = Group(monkeypatch, 2)
    assert Quota(2.0, 2).keep(1, 0.0) == float("inf")
    assert group.stops == []


def test_processes_that_end_and_begin(monkeypatch):
    group, kept = Group(monkeypatch, 2), Quota(1.5, 2)
    group.live(kept, 1.0)
    monkeypatch.setattr(quota, "cpu_s", lambda process: None)
    group.live(kept, 1.0)
    assert group.stops[-1][1] is False


def test_real_processes_use_no_more_and_no_less(monkeypatch):
    """Two processes that never rest, on one CPU, with half of it: by their own clocks, however busy it is."""
    share, looks = CpuShare(0.5), Looks(monkeypatch, 0.5)
    with Script([sys.executable, "-c", BURN], share) as script:
        lines = script.lines()
        while next(lines) != "go":
            pass
        while used_s(script.group) < 1.0:
            next(lines)
        used = used_s(script.group)
    # It comes late on a busy machine; until then a group runs on, or stays stopped.
    assert used < 0.5 * looks.seconds + looks.late_s + SLACK_S
    assert looks.stopped_s < used / 0.5 + looks.late_s + SLACK_S


def test_a_stopped_script_can_still_end_well(tmp_path, monkeypatch):
    monkeypatch.setattr("trainyard.profiling.script.GRACE_S", 60.0)  # on a busy machine too
    code = (
        "import signal, sys\n"
        "signal.signal(15, lambda *_: (open('bye', 'w').close(), sys.exit()))\n"
        "print('go')\nwhile True: pass"
    )
    stopped = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r})\n{code}"]
    with Script(stopped, CpuShare(0.1)) as script:
        lines = script.lines()
        while next(lines) != "go":
            pass
        os.killpg(script.group, signal.SIGSTOP)
    assert (tmp_path / "bye").exists()
