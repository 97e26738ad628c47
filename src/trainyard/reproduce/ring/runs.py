"""One simulation of a ring workload, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.reproduce.ring.workload import HOUR_S, Workload, ring_cluster, ring_jobs
from trainyard.sim.clock import Simulator

RESTART_S = 10.0

DOUBLING, DOUBLING_ALWAYS = "fifo+doubling", "fifo+doubling(hysteresis=false)"
EXPLORE = "fifo+doubling(mode=explore,explore_s=150)"
EXPLORE_ALWAYS = "fifo+doubling(mode=explore,explore_s=150,hysteresis=false)"
PLUS_ONE, PLUS_ONE_ALWAYS = "fifo+optimus", "fifo+optimus(hysteresis=false)"


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation."""

    policy: str
    workload: Workload
    size: int | None = None  # GPUs of every job; None: as the policy likes
    round_s: float | None = None
    restart_s: float = RESTART_S

    def carry_out(self) -> Ran:
        """Simulate."""
        jobs, options = ring_jobs(self.workload, self.size), Rules(self.round_s, self.restart_s)
        result = Simulator(ring_cluster(), jobs, parse_policy(self.policy), options).run()
        return Ran(float(result.outcomes.jct_s.mean()) / HOUR_S, int(result.outcomes.restarts.sum()))


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it."""

    average_h: float
    restarts: int


Found = Mapping[Run, Ran]


def average_h(runs: Sequence[Run], found: Found) -> float:
    """Return the mean over seeds."""
    return sum(found[run].average_h for run in runs) / len(runs)


def restarts(runs: Sequence[Run], found: Found) -> float:
    """Return the mean over seeds."""
    return sum(found[run].restarts for run in runs) / len(runs)
