"""Episodes to learn from, to choose by, and to judge by, which never mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainyard.errors import InputError
from trainyard.learn.episode import Scenario, Source
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.policy.size.dl2.slot import Slots

LEARN = 0.6  # of the jobs of a file, the first ones, are learnt from
CHOOSE = 0.8  # those up to here choose the best weights, the rest judges
FEWEST = 10  # jobs of an episode


@dataclass(frozen=True, slots=True)
class Split:
    """Where episodes come from."""

    training: Source
    validation: Source
    held_out: Source
    slot_s: float
    names: tuple[str, ...] = ()  # of profiles, for networks that tell jobs apart by name


def excerpts(cluster: Cluster, jobs: Sequence[Job], slot_s: float, length: int) -> Split:
    """Cut episodes out of one list of jobs: of its first part to learn, of later parts to judge."""
    if len(jobs) < 5 * FEWEST:
        raise InputError(f"{len(jobs)} jobs are too few to learn from; give {5 * FEWEST} or more")
    speed = SpeedModel(cluster)
    ordered = sorted(jobs, key=lambda job: job.arrival_s)
    first, second = int(LEARN * len(jobs)), int(CHOOSE * len(jobs))

    def source(part: Sequence[Job], salt: int) -> Source:
        most = min(length, len(part))

        def scenario(number: int) -> Scenario:
            start = int(np.random.default_rng([salt, number]).integers(len(part) - most + 1))
            return Scenario(cluster, from_zero(part[start : start + most], slot_s), slot_s, speed)

        return scenario

    names = tuple(sorted({job.profile.name for job in jobs if job.profile is not None}))
    learn, choose, judge = ordered[:first], ordered[first:second], ordered[second:]
    return Split(source(learn, 0), source(choose, 1), source(judge, 2), slot_s, names)


def from_zero(jobs: Sequence[Job], slot_s: float) -> list[Job]:
    """The same jobs with the first of them in the first slot."""
    start_s = jobs[0].arrival_s // slot_s * slot_s
    return [replace(job, arrival_s=job.arrival_s - start_s) for job in jobs]


def mixed(splits: Sequence[Split]) -> Split:
    """Episodes of several splits in turn."""

    def turns(which: str) -> Source:
        sources: list[Source] = [getattr(split, which) for split in splits]
        return lambda number: sources[number % len(sources)](number // len(sources))

    names = tuple(sorted({name for split in splits for name in split.names}))
    return Split(turns("training"), turns("validation"), turns("held_out"), splits[0].slot_s, names)


def bound(scenario: Scenario, slots: Slots) -> float:
    """Average JCT in slots if every job always ran at its best size: no policy can be better."""
    from trainyard.model.rules import Rules
    from trainyard.policy.policy import Policy
    from trainyard.sim.clock import Simulator

    jobs = [replace(job, arrival_s=0.0) for job in scenario.jobs]
    simulator = Simulator(scenario.cluster, jobs, Policy(), Rules(), speed=scenario.speed)
    simulator.advance()
    snapshot = simulator.yard.snapshot(0.0)
    slots.open(0, snapshot, np.arange(len(jobs)), scenario.slot_s)
    return float(slots.jobs.left[0, : len(jobs)].mean())
