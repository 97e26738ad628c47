"""Measuring how fast a script trains with a share of the CPUs.

The script says its speed itself, in lines (`reports`). The first ones are warm-up and do not count. Lines are
gathered in short windows; what other programs took of the script's CPUs in a window (`contention`) is added
to its speed again. The best windows are quiet ones with the CPUs at full `pace`; the speed is the mean of the
middle half of them.
While there are few of those, or they differ a lot, the script is given up to three times its seconds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainyard.errors import InputError
from trainyard.profiling.contention import lost_share, usage
from trainyard.profiling.pace import FULL, Pace
from trainyard.profiling.reports import EXAMPLE, speed_in
from trainyard.profiling.script import Script
from trainyard.profiling.share import CpuShare

WARM_UP = 2  # reports
WINDOW_S = 0.2
LEAST_WINDOWS = 3
MOST_TIMES = 3
SURE = 0.02
QUIET = 0.1  # what a window may lose to others more than the quietest quarter
PATIENCE_S = 60.0  # twice that while the script prints other lines
SAY_S = 10.0
HOW = f"print a line such as '{EXAMPLE}' about once a second"

Notify = Callable[[float, float], None]  # CPUs, samples/s
Waiting = Callable[[float, float], None]  # CPUs, seconds without a report


@dataclass(frozen=True, slots=True)
class Point:
    """A measured speed, and the share of it that other programs took and that was added again."""

    cpus: float
    samples_per_s: float
    reports: int
    lost: float


def measure(
    command: Sequence[str],
    cpus: float,
    seconds: float,
    notify: Notify = lambda _cpus, _speed: None,
    pace: Pace | None = None,
    patience_s: float = PATIENCE_S,
    waiting: Waiting = lambda _cpus, _seconds: None,
    earlier: list[Window] | None = None,
) -> Point:
    """Run a script with some CPUs until it has reported for some seconds; windows join the earlier ones."""
    share = CpuShare(cpus)
    with Script(command, share) as script:
        windows = _Windows(script.group, share, seconds, pace or Pace(), [] if earlier is None else earlier)
        silence = _Silence(patience_s, lambda seconds: waiting(cpus, seconds))
        for line in script.lines():
            windows.pace.look(share.numbers)
            speed = speed_in(line)
            if speed is not None:
                notify(cpus, speed)
                windows.add(speed)
            if windows.complete():
                return windows.point()
            silence.hear(line, reported=speed is not None)
            if limit_s := silence.over():
                raise InputError(f"'{script.name}' reported no speed for {limit_s:g} s; {HOW}")
        return _of_ended(script, windows, cpus)


def _of_ended(script: Script, windows: _Windows, cpus: float) -> Point:
    how = script.ending()
    if how:
        raise InputError(f"with {cpus:g} CPUs '{script.name}' {how}; make it run by itself first")
    if not windows.reports:
        raise InputError(f"'{script.name}' ended without reporting a speed; {HOW}")
    windows.close()
    if not windows.new:
        few = f"ended after {windows.reports} reports, of which the first {WARM_UP} are warm-up"
        raise InputError(f"'{script.name}' {few}; let it run longer or report more often")
    return windows.point()


class _Silence:
    """How long a script has not reported a speed, and how long it has printed nothing at all."""

    def __init__(self, patience_s: float, say: Callable[[float], None]) -> None:
        self._patience_s, self._say = patience_s, say
        self._reported_s = self._printed_s = self._said_s = time.monotonic()

    def hear(self, line: str, *, reported: bool) -> None:
        """Take in a line, and now and then say that none was a report."""
        now_s = time.monotonic()
        if line:
            self._printed_s = now_s
        if reported:
            self._reported_s = self._said_s = now_s
        elif now_s - self._said_s >= SAY_S:
            self._said_s = now_s
            self._say(now_s - self._reported_s)

    def over(self) -> float | None:
        """Return the seconds after which to give up, if they are over."""
        now_s = time.monotonic()
        if now_s - self._printed_s > self._patience_s:
            return self._patience_s
        return 2 * self._patience_s if now_s - self._reported_s > 2 * self._patience_s else None


class Window(NamedTuple):
    """A stretch of time: samples/s without others, the share lost to them, the CPUs' pace, the reports."""

    samples_per_s: float
    lost: float
    pace: float
    reports: int = 1


class _Windows:
    """Reports after the warm-up, gathered in windows."""

    def __init__(self, group: int, share: CpuShare, seconds: float, pace: Pace, done: list[Window]) -> None:
        self.reports = 0
        self.done, self._before = done, len(done)
        self.pace = pace
        self._group, self._share, self._seconds = group, share, seconds
        self._speeds: list[float] = []
        self._used = usage(group, share.numbers)
        self._began_s = self._used.at_s

    @property
    def new(self) -> int:
        """Windows since this measurement began."""
        return len(self.done) - self._before

    def add(self, speed: float) -> None:
        """Take in one report."""
        self.reports += 1
        now_s = time.monotonic()
        if self.reports > WARM_UP:
            self._speeds.append(speed)
            if now_s - self._used.at_s >= WINDOW_S:
                self.close()
        elif self.reports == WARM_UP:
            self._began_s = now_s
            self._used = usage(self._group, self._share.numbers)

    def close(self) -> None:
        """End a window, if it has reports, and begin the next."""
        if self._speeds:
            before, self._used = self._used, usage(self._group, self._share.numbers)
            lost = lost_share(before, self._used, self._share.cpus)
            speed = statistics.median(self._speeds) / (1 - lost)
            self.done.append(Window(speed, lost, self.pace.since_last(), len(self._speeds)))
            self._speeds = []

    def complete(self) -> bool:
        """Tell whether there is enough."""
        lasted = time.monotonic() - self._began_s
        if self.new < LEAST_WINDOWS or lasted < self._seconds:
            return False
        return lasted >= MOST_TIMES * self._seconds or _unsure(self._good()) < SURE

    def point(self) -> Point:
        """Return the mean of the middle half of the best windows."""
        best = self._good() or sorted(self.done, key=lambda one: -one.pace)[: 1 + len(self.done) // 4]
        speed, lost = _middle([one.samples_per_s for one in best]), _middle([one.lost for one in best])
        return Point(self._share.cpus, speed, sum(one.reports for one in self.done), round(lost, 3))

    def _good(self) -> list[Window]:
        """Return the windows at full pace, without those that lost much more than others."""
        full = [window for window in self.done if window.pace >= FULL * self.pace.best]
        least = sorted(window.lost for window in full)[len(full) // 4] if full else 0.0
        return [window for window in full if window.lost <= least + QUIET]


def _middle(numbers: Sequence[float]) -> float:
    """Return the mean of the middle half."""
    aside = len(numbers) // 4
    return statistics.mean(sorted(numbers)[aside : len(numbers) - aside])


def _unsure(windows: Sequence[Window]) -> float:
    """Return the standard error of the mean speed, relative to it."""
    if len(windows) < LEAST_WINDOWS:
        return math.inf
    speeds = [window.samples_per_s for window in windows]
    return statistics.stdev(speeds) / statistics.mean(speeds) / math.sqrt(len(speeds))
