"""Time that never runs back: the wall clock when it was last looked at, and a monotonic one since then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

JUMP_S = 2.0  # the wall clock is said to have jumped if it is further off


class Clock(Protocol):
    """Tells the time of the core."""

    def now(self) -> float:
        """Return Unix seconds that never run back."""
        ...


class RealClock:
    """Wall clock for users, monotonic for intervals: a jump of the wall clock changes no interval."""

    def __init__(
        self,
        not_before_s: float = 0.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the wall clock, but not before what was written down last."""
        self._wall, self._monotonic = wall, monotonic
        self._began = monotonic()
        self._began_s = max(wall(), not_before_s)

    def now(self) -> float:
        """Return Unix seconds that never run back."""
        return self._began_s + (self._monotonic() - self._began)

    def ahead_s(self) -> float:
        """Return by how much this is ahead of the wall clock: 0 unless that was set or was wrong before."""
        ahead = self.now() - self._wall()
        return ahead if abs(ahead) > JUMP_S else 0.0


class SetClock:
    """A clock that is set by hand: for traces, and for tests."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def now(self) -> float:
        """Return what it was set to."""
        return self.now_s
