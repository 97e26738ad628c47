"""One simulation of the DL2 experiments, and the table that all of them are shown in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import HELD_OUT_SEED, Setting, validation_traces
from trainyard.learn.settings.splits import AnySetting, episode, ground
from trainyard.model.arrays import Floats
from trainyard.model.rules import Rules
from trainyard.reproduce.dl2.rules import bound_slots, policy_of
from trainyard.reproduce.dl2.theirs import BOUND
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.sim.clock import Simulator


@dataclass(frozen=True, slots=True)
class Run:
    """One trace under one rule or policy."""

    rule: str
    setting: AnySetting
    trace: int
    validation: bool = False  # else held out

    def carry_out(self) -> Outcome:
        """Simulate."""
        ground = scenario(self.setting, self.trace, self.validation)
        cluster, jobs, slot_s, speed = ground.cluster, ground.jobs, ground.slot_s, ground.speed
        simulator = Simulator(cluster, jobs, policy_of(self.rule), Rules(round_s=slot_s), speed=speed)
        simulator.run()
        finish_s, arrival_s = simulator.finishes()
        return Outcome(
            float((finish_s - arrival_s).mean()) / slot_s,
            float(finish_s.max() - arrival_s.min()) / slot_s,
            bound_slots(ground),
        )


class Outcome(NamedTuple):
    """What came of it, in slots."""

    jct: float
    makespan: float
    bound: float  # average JCT of any schedule at the very least


Found = Mapping[Run, Outcome]


def scenario(setting: AnySetting, trace: int, validation: bool = False) -> Scenario:
    """Return one trace of a setting: of those held out, or of the public simulator's validation traces."""
    if validation and isinstance(setting, Setting):
        cluster, speed = ground(setting)
        return Scenario(cluster, validation_traces(setting, trace + 1)[trace], setting.slot_s, speed)
    return episode(setting, HELD_OUT_SEED + trace)


class Group(NamedTuple):
    """Some traces that a table gives one average of, for each rule."""

    label: tuple[Cell, ...]
    setting: AnySetting
    traces: int
    validation: bool = False

    def runs(self, rule: str) -> list[Run]:
        """Every trace under a rule."""
        return [Run(rule, self.setting, trace, self.validation) for trace in range(self.traces)]

    def outcomes(self, rule: str, found: Found) -> Floats:
        """Average JCT, makespan and bound (columns) of every trace."""
        return np.array([found[run] for run in self.runs(rule)])

    def error(self, rule: str, found: Found) -> float | None:
        """Standard error of the average JCT; of a single trace there is none."""
        jct = self.outcomes(rule, found)[:, 0]
        return float(jct.std(ddof=1)) / self.traces**0.5 if self.traces > 1 else None


def runs(groups: Iterable[Group], rules: Sequence[str]) -> list[Run]:
    """Every run, the longest first."""
    all_runs = [run for group in groups for rule in rules for run in group.runs(rule)]
    return sorted(all_runs, key=lambda run: -run.setting.nodes * run.setting.jobs)


COLUMNS = (
    Heading("rule"),
    Heading("avg JCT", "{:.2f}"),
    Heading("+-", "{:.2f}"),
    Heading("makespan", "{:.1f}"),
    Heading("% better than DRF", "{:.1f}"),
    Heading("% better than Optimus", "{:.1f}"),
    Heading("bound / JCT", "{:.2f}"),
)
NOTE = (
    "In slots, means over traces, +- the standard error. bound: every job always at its own best size, as if "
    "alone; bound / JCT says how contended the cluster is: at 1 there is nothing left to gain. "
)


def rows(group: Group, rules: Sequence[str], against: tuple[str, str], found: Found) -> list[list[Cell]]:
    """One row for each rule, compared with DRF and Optimus as they are called here, and one for the bound."""
    means = {rule: group.outcomes(rule, found).mean(axis=0) for rule in {*rules, *against}}
    bound = float(next(iter(means.values()))[2])
    rivals = [float(means[rule][0]) for rule in against]
    table: list[list[Cell]] = []
    for rule in rules:
        jct, makespan, _ = means[rule].tolist()
        better = [100 * (1 - jct / rival) for rival in rivals]
        table.append([*group.label, rule, jct, group.error(rule, found), makespan, *better, bound / jct])
    better = [100 * (1 - bound / rival) for rival in rivals]
    return [*table, [*group.label, BOUND, bound, None, None, *better, 1.0]]


def results(
    name: str, title: str, labels: Sequence[str], cells: Sequence[Sequence[Cell]], note: str
) -> Table:
    """The table of some rows."""
    return Table(name, title, [*map(Heading, labels), *COLUMNS], cells, NOTE + note)
