"""Why a job has to wait: told by whoever refused it, with what was seen then."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["room", "place", "reserved", "behind", "delay", "size", "limit"]


class Refusal(NamedTuple):
    """One job that a decision leaves waiting."""

    kind: Kind
    needs: int = 0  # GPUs
    gpu_type: str = ""  # that it must have, if any
    free: int = 0  # GPUs of that type, or all, that nobody had then
    ahead: int = 0  # waiting jobs that come first
    head: str = ""  # the first of these
    said: str = ""  # by the stage
    down: int = 0  # GPUs of that type, or all, on nodes that were down or drained
    kept: int = 0  # the same, reserved for nobody

    def __str__(self) -> str:
        """One line for people."""
        if self.kind == "behind":
            return f"waits behind {self.head}: the order is strict"
        if self.kind == "delay":
            return f"would delay {self.head}, which comes first"
        if self.kind in ("size", "limit"):
            return self.said
        what = f"{self.gpu_type} GPU".strip() + ("s" if self.needs != 1 else "")
        line = f"needs {self.needs} {what}; {self.free} {'is' if self.free == 1 else 'are'} free"
        if self.kind in ("place", "reserved"):
            return f"{line}, but not {self.said}{self._closed}"
        first = "1 job comes first" if self.ahead == 1 else f"{self.ahead} jobs come first"
        return (f"{line}, and {first}" if self.ahead else line) + self._closed

    @property
    def _closed(self) -> str:
        """Tell of nodes that nobody can use now."""
        closed = ((self.down, "on nodes that are down or drained"), (self.kept, "reserved for maintenance"))
        return "".join(f"; {n} more {'is' if n == 1 else 'are'} {where}" for n, where in closed if n)
