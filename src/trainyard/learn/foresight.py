"""What is still to come in an episode: the values may know it, as they take no decisions.

Arrivals are most of what makes one episode's returns differ from another's. A baseline that knows them takes
that noise out of the advantages, without bias, since no decision changes which jobs come.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Scenario, Source
from trainyard.model.arrays import Floats, Ints
from trainyard.model.speed import SpeedModel
from trainyard.model.tolerance import SECONDS
from trainyard.policy.size.dl2.arrays import Singles

HORIZONS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 32])  # slots
OF_FUTURE = 2 * HORIZONS.size  # numbers
MOST_SLOTS = 1_000_000  # of an episode
Trace = tuple[Floats, Floats]  # arrivals in slots; jobs and work that came so far


class Foresight:
    """A source of episodes that remembers what comes in those that are being played."""

    def __init__(self, source: Source, rows: int, group: int = 1) -> None:
        self._source, self._rows, self._group = source, rows, group
        self._trace: dict[int, Trace] = {}
        self.seen: Singles = np.zeros((rows, OF_FUTURE), dtype=np.float32)

    def __call__(self, number: int) -> Scenario:
        """Return an episode; the first ones begin late, each at another time, so that rows differ."""
        scenario = self._source(self.trace_of(number))
        if number < self._rows:
            skip = len(scenario.jobs) * self.trace_of(number) * self._group // self._rows
            start_s = scenario.jobs[skip].arrival_s // scenario.slot_s * scenario.slot_s
            jobs = [replace(job, arrival_s=job.arrival_s - start_s) for job in scenario.jobs[skip:]]
            scenario = replace(scenario, jobs=jobs)
        self._trace[number] = traced(scenario)
        return scenario

    def trace_of(self, number: int) -> int:
        """Return which trace an episode is of: the rows of a group play the same."""
        turn, row = divmod(number, self._rows)
        return turn * (self._rows // self._group) + row // self._group

    def moments(self, env: BatchEnv) -> Ints:
        """Number the slots that rows are in: the same for rows in the same slot of the same trace."""
        return np.array(
            [
                -1 if episode is None else self.trace_of(episode.number) * MOST_SLOTS + episode.slots
                for episode in env.episodes
            ]
        )

    def look(self, env: BatchEnv, rows: list[int]) -> None:
        """Note what comes in these rows within several horizons: jobs, and their work."""
        for b in rows:
            episode = env.episodes[b]
            if episode is None:
                continue
            self.seen[b] = coming(self._trace[episode.number], episode.simulator.now_s / episode.slot_s)


def traced(scenario: Scenario) -> Trace:
    """Add up what comes."""
    speed = scenario.speed or SpeedModel(scenario.cluster)
    work = [speed.work(job) for job in scenario.jobs]
    slots = np.array([total / rate for total, rate, _ in work]) / scenario.slot_s
    arrivals = np.array([job.arrival_s for job in scenario.jobs]) / scenario.slot_s
    sums = np.zeros((2, arrivals.size + 1))
    sums[0, 1:], sums[1, 1:] = np.arange(1, arrivals.size + 1), slots.cumsum()
    return arrivals, sums


def coming(trace: Trace, now: float) -> Floats:
    """Jobs, and their work, that come within several horizons."""
    arrivals, sums = trace
    until = np.searchsorted(arrivals, now + HORIZONS + SECONDS)
    more = sums[:, until] - sums[:, np.searchsorted(arrivals, now + SECONDS)][:, None]
    numbers: Floats = np.log1p(more).ravel()
    return numbers
