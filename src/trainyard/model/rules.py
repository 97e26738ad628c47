"""The rules of a run: when decisions are taken, what starts cost, which seed, how much may go wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict


@dataclass(frozen=True, slots=True)
class Rules:
    """How to run: see the options of the `simulate` command."""

    round_s: float | None = None  # decisions are taken at multiples of this; None: whenever something changes
    restart_s: float | None = None  # of every job; None: what its profile says
    start_s: float = 0.0  # of every job's first start
    seed: int = 0
    until_s: float = math.inf
    unknown_durations: bool = False  # hide the jobs' work from the policy
    # Of real jobs:
    most_starts: int = 3  # failed starts in a row; then a job has failed
    most_idle: int = 5  # restarts in a row that nobody asked for, without progress; then a job is held
    many_unsaved: int = 3  # stops in a row without a checkpoint, from which on the next one may take longer
    back_off_s: float = 10.0  # it doubles with every counted end and failed start
    most_back_off_s: float = 300.0


class RuleOptions(TypedDict, total=False):
    """The same by name, for functions that take rules as keywords."""

    round_s: float | None
    restart_s: float | None
    start_s: float
    seed: int
    until_s: float
    unknown_durations: bool
