"""What is run to reproduce Synergy: settings, the runs they stand for, and what comes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainyard.model.arrays import Floats
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.reproduce.synergy.workload import SEED, SPLIT, Split, Workload, synergy_cluster, synergy_jobs
from trainyard.sim.clock import Simulator

ORDERS = {"FIFO": "fifo(fill=greedy)", "SRTF": "srtf", "LAS": "las", "FTF": "ftf"}
STARVING = ("SRTF", "LAS")  # orders that let jobs wait as long as others keep coming
ROUND_S = 300.0
HOUR_S = 3600.0


class Window(NamedTuple):
    """Which jobs are measured, by number, and how many hours others keep coming after the last of them."""

    first: int
    last: int
    after_h: float
    after_starving_h: float
    at_least: int = 0  # so many jobs before those hours, even if they are not measured

    def jobs(self, order: str, per_h: float) -> int:
        """Return how many jobs there are altogether."""
        after_h = self.after_starving_h if order in STARVING else self.after_h
        return max(self.last, self.at_least) + round(per_h * after_h)


# The public simulator gives a job priority that has not run for 1,000 hours. Ours has no such rule; with
# arrivals that end 1,000 hours after the last measured job, a starved job waits about as long.
WINDOW = Window(4000, 5000, 300.0, 1000.0)
QUICK_WINDOW = Window(1000, 1500, 100.0, 100.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation."""

    policy: str
    workload: Workload
    nodes: int
    cpus_per_gpu: float = 3.0
    round_s: float | None = ROUND_S
    restart_s: float | None = 0.0  # None: what the profiles say


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it."""

    jct_h: Floats  # of every job, in order of arrival
    makespan_h: float
    restarts: int
    decision_ms: float  # on average


Found = Mapping[Run, Ran]


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything but how CPUs and memory are shared out."""

    order: str
    per_h: float
    split: Split = SPLIT
    cpus_per_gpu: float = 3.0
    multi_gpu: bool = False
    nodes: int = 16
    seed: int = SEED
    window: Window = WINDOW

    def run(self, tune: str) -> Run:
        """Return the run with proportional shares ("") or with a tune stage."""
        jobs = self.window.jobs(self.order, self.per_h)
        work = Workload(jobs, self.per_h, self.split, self.multi_gpu, seed=self.seed)
        return Run(policy_name(self.order, tune), work, self.nodes, self.cpus_per_gpu)

    def by_events(self, tune: str) -> Run:
        """Return the run with decisions at every event and the profiles' own restart costs."""
        return replace(self.run(tune), round_s=None, restart_s=None)

    def average_h(self, ran: Ran) -> float:
        """Average completion time of the measured jobs."""
        return float(ran.jct_h[self.window.first : self.window.last].mean())


def policy_name(order: str, tune: str) -> str:
    """Return the name of a policy in the grammar of policies."""
    return f"{ORDERS[order]}+{tune}" if tune else ORDERS[order]


def gain(setting: Setting, found: Found) -> float:
    """How many times shorter the average completion time is with tune than with proportional shares."""
    before, after = (setting.average_h(found[setting.run(tune)]) for tune in ("", "tune"))
    return before / after


def carry_out(run: Run) -> Ran:
    """Simulate."""
    cluster, options = synergy_cluster(run.nodes, run.cpus_per_gpu), Rules(run.round_s, run.restart_s)
    result = Simulator(cluster, synergy_jobs(run.workload), parse_policy(run.policy), options).run()
    o = result.outcomes
    makespan_s = float(o.finish_s.max() - o.arrival_s.min())
    mean_ms = float(result.decision_ms.mean())
    return Ran(o.jct_s / HOUR_S, makespan_s / HOUR_S, int(o.restarts.sum()), mean_ms)


def effort(run: Run) -> float:
    """About how long a run takes, compared with others: the longest are best begun first."""
    weight = {"opt": 20.0, "tune": 4.0}.get(run.policy.rpartition("+")[2], 1.0)
    return weight * run.workload.jobs * (run.nodes + 8)
