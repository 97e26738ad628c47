"""The terms of a real job: how often it is started again, how long it may run and wait, what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

When = Literal["ok", "failed", "any"]  # how another job has to end before this one may start


@dataclass(frozen=True, slots=True)
class Terms:
    """What a user asked for beside the work itself. A job of a trace has none: it never ends early."""

    retries: int = 0  # counted ends after which it is started again
    transient_exit_codes: tuple[int, ...] = ()  # these are not counted
    time_limit_s: float = inf  # of running, over all attempts
    max_wait_s: float = inf  # until its first start
    after: Mapping[str, When] = field(default_factory=dict)  # jobs that have to end first
    hold: bool = False  # it waits until somebody releases it


NO_TERMS = Terms()
