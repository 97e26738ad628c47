"""Measuring how fast a copy of a script trains with its share of the CPUs, in one of its turns.

The script says its speed itself, in lines (`reports`). The first ones are warm-up and do not count, nor does
the first one after a pause, which spans it. What other programs took of the script's CPUs (`contention`) is
added to its speed again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trainyard.errors import InputError
from trainyard.profiling.contention import lost_share, usage
from trainyard.profiling.reports import EXAMPLE, speed_in
from trainyard.profiling.script import Script
from trainyard.profiling.share import CpuShare

WARM_UP = 2  # reports
SPANNING = 1
PATIENCE_S = 60.0  # twice that while the script prints other lines
SAY_S = 10.0
HOW = f"print a line such as '{EXAMPLE}' about once a second"

Notify = Callable[[float, float], None]  # CPUs, samples/s
Waiting = Callable[[float, float], None]  # CPUs, seconds without a report


class Listener(NamedTuple):
    """What to call on a report and while waiting for one, and how long to wait."""

    notify: Notify = lambda _cpus, _speed: None
    waiting: Waiting = lambda _cpus, _seconds: None
    patience_s: float = PATIENCE_S


class Window(NamedTuple):
    """A stretch of time: samples/s without others, the share lost to them, the reports, its seconds."""

    samples_per_s: float
    lost: float
    reports: int
    seconds: float


class Copy:
    """A copy of a script with a share of the CPUs, which runs in turns until it is ended."""

    def __init__(self, command: Sequence[str], cpus: float, listener: Listener) -> None:
        self.ended = False  # by itself
        self._share = CpuShare(cpus)
        self._script = Script(command, self._share)
        self._lines = self._script.lines()
        self._listener = listener
        self._reports = self._windows = 0
        self._skip = WARM_UP

    def start(self) -> None:
        """Start the script; `end` must follow."""
        self._script.start()

    def end(self) -> None:
        """End the script."""
        self._script.end()

    def pause(self) -> None:
        """Stop the script until its next turn."""
        self._script.pause()
        self._skip = SPANNING

    def go_on(self) -> None:
        """Let the script run, if it is paused; what it printed before does not count."""
        if not self._script.paused:
            return
        for _ in range(2):  # what was read, and what is in the pipe
            while next(self._lines, ""):
                pass
        self._script.go_on()

    def turn(self, least_s: float) -> Window | None:
        """Listen until there are reports of some seconds; None if the script has ended without another."""
        silence = _Silence(self._listener.patience_s, lambda s: self._listener.waiting(self._share.cpus, s))
        speeds: list[float] = []
        used = usage(self._script.group, self._share.numbers)
        for line in self._lines:
            speed = speed_in(line)
            if speed is not None:
                self._listener.notify(self._share.cpus, speed)
                self._reports += 1
                if self._skip:
                    self._skip -= 1
                    used = usage(self._script.group, self._share.numbers)
                else:
                    speeds.append(speed)
                    if time.monotonic() - used.at_s >= least_s:
                        break
            silence.hear(line, reported=speed is not None)
            if limit_s := silence.over():
                raise InputError(f"'{self._script.name}' reported no speed for {limit_s:g} s; {HOW}")
        else:
            self._check_end(speeds)
        if not speeds:
            return None
        self._windows += 1
        now = usage(self._script.group, self._share.numbers)
        lost = lost_share(used, now, self._share.cpus)
        return Window(statistics.median(speeds) / (1 - lost), lost, len(speeds), now.at_s - used.at_s)

    def _check_end(self, speeds: Sequence[float]) -> None:
        """Refuse an end that is a failure, or came before anything was measured."""
        self.ended, name = True, self._script.name
        how = self._script.ending()
        if how:
            raise InputError(f"with {self._share.cpus:g} CPUs '{name}' {how}; make it run by itself first")
        if not self._reports:
            raise InputError(f"'{name}' ended without reporting a speed; {HOW}")
        if not speeds and not self._windows:
            few = f"ended after {self._reports} reports, of which the first {WARM_UP} are warm-up"
            raise InputError(f"'{name}' {few}; let it run longer or report more often")


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
