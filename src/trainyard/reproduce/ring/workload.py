"""The jobs of Capes et al.'s simulation as far as they are remembered, and other patterns of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Sync, Tables
from trainyard.reproduce.ring.curves import draw_curve
from trainyard.reproduce.ring.theirs import MINUTES

NODES, GPUS_PER_NODE = 8, 8
GPUS = NODES * GPUS_PER_NODE
CAP = 8  # GPUs of one job
SAMPLES = 1e6  # of a job of length 1; any number would do
MODELS = 8  # different curves in a workload that draws them
MEASURED = "measured"
HOUR_S = 3600.0


class Phase(NamedTuple):
    """Some jobs, and the mean of the exponential gap before each; 0 if they come together."""

    jobs: int
    gap_s: float


@dataclass(frozen=True, slots=True)
class Pattern:
    """When jobs arrive and how long they are."""

    name: str
    phases: tuple[Phase, ...]
    spread: float = 0.0  # of the logarithm of a job's length, whose mean is 1

    @property
    def jobs(self) -> int:
        """How many there are."""
        return sum(phase.jobs for phase in self.phases)


EXTREME = Pattern("extreme", (Phase(206, 250.0),))
MODERATE = Pattern("moderate", (Phase(114, 500.0),))
NONE = Pattern("none", (Phase(44, 1000.0),))
LEVELS = (EXTREME, MODERATE, NONE)

SPREAD = 1.5  # half of the jobs are shorter than a third of the mean, one in twenty is 3.8 times as long
SMALL_BURSTS = (Phase(1, 6 * HOUR_S), Phase(15, 0.0)) * 8
LARGE_BURSTS = (Phase(1, 12 * HOUR_S), Phase(63, 0.0)) * 3
FLOODS = (Phase(16, HOUR_S), Phase(1, HOUR_S), Phase(63, 0.0)) * 2
OTHERS = (
    Pattern("quiet", (Phase(30, 2 * HOUR_S),)),
    Pattern("bursts 16", SMALL_BURSTS),
    Pattern("bursts 64", LARGE_BURSTS),
    Pattern("floods", FLOODS),
    Pattern("extreme, mixed", EXTREME.phases, SPREAD),
    Pattern("moderate, mixed", MODERATE.phases, SPREAD),
    Pattern("bursts 64, mixed", LARGE_BURSTS, SPREAD),
    Pattern("floods, mixed", FLOODS, SPREAD),
)


@dataclass(frozen=True, slots=True)
class Workload:
    """One random draw of a pattern."""

    pattern: Pattern
    seed: int
    curve: str = MEASURED
    cap: int = CAP


def ring_cluster() -> Cluster:
    """Return 8 nodes of 8 GPUs."""
    return uniform_cluster(NODES, GPUS_PER_NODE)


def ring_jobs(workload: Workload, size: int | None = None) -> list[Job]:
    """Draw jobs that may have 1 to `cap` GPUs, or exactly `size`."""
    rng, pattern = np.random.default_rng(workload.seed), workload.pattern
    gaps = np.concatenate([rng.exponential(phase.gap_s, phase.jobs) for phase in pattern.phases])
    lengths = np.exp(rng.normal(-(pattern.spread**2) / 2, pattern.spread, gaps.size))
    profiles = _profiles(workload, rng)
    least, most = (1, workload.cap) if size is None else (size, size)
    return [
        Job(
            f"job{number:03}",
            arrival_s,
            most,
            samples=SAMPLES * length,
            profile=profiles[number % len(profiles)],
            min_gpus=least,
            max_gpus=most,
        )
        for number, (arrival_s, length) in enumerate(
            zip(gaps.cumsum().tolist(), lengths.tolist(), strict=True)
        )
    ]


def _profiles(workload: Workload, rng: np.random.Generator) -> list[Profile]:
    if workload.curve == MEASURED:
        sizes = np.array(list(MINUTES))
        return [_profile(sizes, MINUTES[1] / np.array(list(MINUTES.values())))]
    sizes = np.arange(1, workload.cap + 1)
    return [_profile(sizes, draw_curve(workload.curve, rng, workload.cap)) for _ in range(MODELS)]


def _profile(sizes: Ints, speedup: Floats) -> Profile:
    """A job's speed at some sizes; alone on one GPU it takes as long as the paper's."""
    speeds = SAMPLES / (60 * MINUTES[1]) * speedup
    rows = tuple((float(w), 0.0, float(speed)) for w, speed in zip(sizes, speeds, strict=True))
    tables = Tables(workers_servers=rows)
    return Profile("ring", 128, "weak", sync=Sync(kind="ring"), tables=tables)
