"""Comparing CPU counts although the machine's speed drifts: copies of a script take turns of about a second.

One copy runs at each count under examination, and all but one of them are stopped. A round is one turn of
each, forth and then back again; what drifts from round to round cancels (`drift`). Rounds go on until the
counts are known against each other, or each was given three times its seconds.

Where copies cannot live beside each other, or report means over pauses too, a turn is a run of its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

from trainyard.errors import InputError
from trainyard.profiling.drift import Measured, without_drift
from trainyard.profiling.measure import Copy, Listener, Window

WINDOW_S = 0.9
LEAST_ROUNDS = 3
MOST_TIMES = 3
SURE = 0.015
SLUMP = 0.6  # of the speed before the first pause
MEAN = "its reports are means over a longer time"


@dataclass(frozen=True, slots=True)
class Point:
    """A measured speed, and the share of it that other programs took and that was added again."""

    cpus: float
    samples_per_s: float
    reports: int
    lost: float


class Turns:
    """Copies of a script that run one after the other, until the block ends."""

    def __init__(self, command: Sequence[str], seconds: float, listener: Listener | None = None) -> None:
        self.alone = ""  # why each turn is a run of its own, if it is
        self._command, self._seconds, self._listener = command, seconds, listener or Listener()
        self._copies: dict[float, Copy] = {}
        self._windows: dict[tuple[int, float], Window] = {}  # by round and CPUs
        self._round = 0

    def __enter__(self) -> Turns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(list(self._copies))

    def compare(self, counts: Sequence[float]) -> dict[float, Point]:
        """Measure some counts against each other; return the points of all counts so far."""
        self._end([cpus for cpus in self._copies if cpus not in counts])
        before, over = self._round, False
        while not (over or self._sure(counts, before)):
            self._round += 1
            for cpus in counts[:: 1 if self._round % 2 else -1]:
                over |= self._take_turn(cpus, among=len(counts))
            if self._round == LEAST_ROUNDS and not (over or self.alone) and self._slumped():
                self._go_alone(MEAN)
                self._windows.clear()
        return self._points()

    def _take_turn(self, cpus: float, among: int) -> bool:
        """Measure a window; tell whether the script ended by itself."""
        try:
            window = self._running(cpus).turn(self._seconds if self.alone else WINDOW_S)
        except InputError as error:
            if len(self._copies) < 2:
                raise
            self._go_alone(str(error))
            window = self._running(cpus).turn(self._seconds)
        if window is not None:
            self._windows[self._round, cpus] = window
        copy = self._copies[cpus]
        if self.alone or copy.ended:
            self._end([cpus])
        elif among > 1:
            copy.pause()
        return copy.ended

    def _running(self, cpus: float) -> Copy:
        if cpus in self._copies:
            self._copies[cpus].go_on()
        else:
            self._copies[cpus] = Copy(self._command, cpus, self._listener)  # known before it starts
            self._copies[cpus].start()
        return self._copies[cpus]

    def _end(self, counts: Sequence[float]) -> None:
        with ExitStack() as ending:  # of each, even if another cannot be ended
            for cpus in counts:
                ending.callback(self._copies[cpus].end)
        for cpus in counts:
            del self._copies[cpus]

    def _go_alone(self, why: str) -> None:
        self._end(list(self._copies))
        self.alone = why

    def _slumped(self) -> bool:
        """Tell whether reports are far lower after pauses than before the first one."""
        first, last = (
            statistics.median(w.samples_per_s for (at, _), w in self._windows.items() if at == number)
            for number in (1, self._round)
        )
        return last < SLUMP * first

    def _sure(self, counts: Sequence[float], before: int) -> bool:
        """Tell whether the rounds of a comparison are enough."""
        spent_s = min(
            sum(w.seconds for (number, at), w in self._windows.items() if number > before and at == cpus)
            for cpus in counts
        )
        if spent_s < self._seconds or not (self.alone or self._round - before >= LEAST_ROUNDS):
            return False
        levels = without_drift(self._measured())
        return spent_s >= MOST_TIMES * self._seconds or all(levels[cpus].unsure < SURE for cpus in counts)

    def _measured(self) -> list[Measured]:
        return [Measured(number, cpus, w.samples_per_s) for (number, cpus), w in self._windows.items()]

    def _points(self) -> dict[float, Point]:
        points = {}
        for cpus, level in without_drift(self._measured()).items():
            mine = [window for (_, at), window in self._windows.items() if at == cpus]
            lost = round(statistics.median(window.lost for window in mine), 3)
            speed = float(f"{level.samples_per_s:.6g}")  # digits beyond are no more than rounding
            points[cpus] = Point(cpus, speed, sum(window.reports for window in mine), lost)
        return points
