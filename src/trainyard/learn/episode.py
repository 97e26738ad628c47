"""One episode: the simulator, stopped at the beginning of every time slot to be told sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.stage import settled
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.sim.clock import Simulator
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

NO_COSTS = Rules()


@dataclass(frozen=True, slots=True)
class Scenario:
    """What an episode is about: a cluster, the jobs that come, and how long a slot lasts."""

    cluster: Cluster
    jobs: Sequence[Job]
    slot_s: float
    speed: SpeedModel | None = None  # of this cluster, to share what it has worked out already
    costs: Rules = NO_COSTS  # what starts and restarts take, and the seed

    @property
    def options(self) -> Rules:
        """How to run it: a round is a slot."""
        return replace(self.costs, round_s=self.slot_s)


Source = Callable[[int], Scenario]  # the i-th episode


class Outcome(NamedTuple):
    """How an episode ended, in slots."""

    episode: int
    avg_jct: float
    makespan: float
    slots: int
    decisions: int


class AsTold(Size):
    """Size stage that answers what it was told."""

    def __init__(self) -> None:
        self.gpus: Ints = np.zeros(0, dtype=np.int64)  # of each row of the job table
        self.servers: Ints = self.gpus

    def tell(self, jobs: int, rows: Ints, shapes: Shapes) -> None:
        """Take note of the shapes of these rows; the others wait."""
        self.gpus, self.servers = np.zeros((2, jobs), dtype=np.int64)
        self.gpus[rows] = shapes.gpus
        if shapes.servers is not None:
            self.servers[rows] = shapes.servers

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return the shapes told for each ranked row."""
        return Chosen(settled(snapshot, ranked, Shapes(self.gpus[ranked], self.servers[ranked])))


class Episode:
    """Runs a scenario slot by slot; `policy` says who goes first and where jobs run."""

    def __init__(self, number: int, scenario: Scenario, policy: Policy) -> None:
        self.number = number
        self.slot_s = scenario.slot_s
        self.told = AsTold()
        self.policy = replace(policy, size=self.told)
        self.simulator = Simulator(
            scenario.cluster, scenario.jobs, self.policy, scenario.options, speed=scenario.speed
        )
        self.slots = 0
        self.decisions = 0
        self._met = 0.0
        self._undone = 0.0  # work of all jobs that came so far, each counted as one, that was not done

    def open(self) -> tuple[Snapshot, Ints] | None:
        """Go on to the next slot; return what there is to decide on and for whom, None after the last."""
        simulator = self.simulator
        while simulator.advance():
            snapshot = simulator.yard.snapshot(simulator.now_s)
            if len(snapshot.table):
                self.slots += 1
                return snapshot, self.policy.ranked(snapshot)
            simulator.decide()
        return None

    def close(self, rows: Ints, shapes: Shapes) -> None:
        """Run the slot with these shapes."""
        self.told.tell(len(self.simulator.yard.table), rows, shapes)
        self.simulator.decide()

    def rewards(self) -> tuple[float, float]:
        """Return minus the job-slots spent since the last call, and the work done, a whole job being one."""
        snapshot = self.simulator.yard.snapshot(self.simulator.now_s)
        spent, self._met = snapshot.met - self._met, snapshot.met
        total: Floats = snapshot.table.column(Column.TOTAL)
        undone = float((snapshot.remaining_samples() / total).sum()) - self.simulator.arrived
        done, self._undone = self._undone - undone, undone
        return -spent / self.slot_s, done

    def arrivals(self) -> Floats:
        """When each job that is there came."""
        return self.simulator.yard.table.column(Column.ARRIVAL)

    def outcome(self) -> Outcome:
        """Return how it ended."""
        finish_s, arrival_s = self.simulator.finishes()
        makespan = float(finish_s.max() - arrival_s.min())
        jct = float((finish_s - arrival_s).mean())
        return Outcome(self.number, jct / self.slot_s, makespan / self.slot_s, self.slots, self.decisions)
