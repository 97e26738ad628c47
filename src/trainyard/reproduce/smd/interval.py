"""SMD's experiments in one interval: SMD against its baselines and the optimum, over capacity and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.policy.size.smd.offline import (
    Decision,
    admit,
    best_numbers,
    equal_numbers,
    optimus_numbers,
    smd_numbers,
)
from trainyard.policy.size.smd.rounding import Rounding
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.smd import theirs
from trainyard.reproduce.smd.figures import draw
from trainyard.reproduce.smd.workload import INSTANCE, MOST_INSTANCES, UNIT, Amounts, Workload, smd_jobs

EPS = 0.01
UNITS = (1, 2, 3, 4, 5)
UNITS_JOBS = 50
JOBS = (40, 80, 120, 160, 200)
FEW_JOBS = (10, 20, 30, 40, 50)
FULL_SEEDS, QUICK_SEEDS = 60, 10
KINDS = (True, False)  # synchronous?

SMD, ESW, OPTIMUS, OPTIMUS_TIME, OPTIMUM = "SMD", "ESW", "Optimus", "Optimus by time", "optimum"
NAMES = (SMD, ESW, OPTIMUS, OPTIMUS_TIME, OPTIMUM)
WHOLE, RATIO, PART = "{:,.0f}", "{:.3f}x", "{:.3f}"


@dataclass(frozen=True, slots=True)
class Interval:
    """One random set of jobs, decided by every method at several capacities."""

    jobs: int
    synchronous: bool
    seed: int
    capacities: tuple[Amounts, ...]

    def carry_out(self) -> Outcome:
        """Decide."""
        problem, utility = smd_jobs(Workload(self.jobs, self.synchronous, self.seed))
        numbers = {
            SMD: smd_numbers(problem, Rounding(np.random.default_rng(self.seed)), EPS),
            ESW: equal_numbers(problem),
            OPTIMUS: optimus_numbers(problem, utility),
            OPTIMUS_TIME: optimus_numbers(problem),
            OPTIMUM: best_numbers(problem),
        }
        decisions = {
            name: [admit(problem, own, utility, np.array(capacity)) for capacity in self.capacities]
            for name, own in numbers.items()
        }
        demands = problem.demands

        def used(decision: Decision) -> float:
            need = demands.worker * decision.workers[:, None] + demands.server * decision.servers[:, None]
            chosen = decision.admitted
            return float(np.mean(need[chosen].sum(axis=0) / demands.limit[chosen].sum(axis=0)))

        totals = {name: tuple(d.total() for d in own) for name, own in decisions.items()}
        return Outcome(totals, tuple(used(decision) for decision in decisions[SMD]))


class Outcome(NamedTuple):
    """What came of it, at each capacity."""

    total: Mapping[str, tuple[float, ...]]  # utility of those admitted, by who decided
    used: tuple[float, ...]  # of what SMD's jobs reserve, the mean of all resources


Found = Mapping[Interval, Outcome]


# -- which runs ---------------------------------------------------------------------------------------------


def _times(amounts: Amounts, factor: float) -> Amounts:
    a, b, c, d = (factor * amount for amount in amounts)
    return a, b, c, d


def _seeds(quick: bool) -> range:
    return range(QUICK_SEEDS if quick else FULL_SEEDS)


def _over_capacity(kind: bool, quick: bool) -> list[Interval]:
    capacities = tuple(_times(UNIT, units) for units in UNITS)
    return [Interval(UNITS_JOBS, kind, seed, capacities) for seed in _seeds(quick)]


def _over_jobs(jobs: int, kind: bool, quick: bool) -> list[Interval]:
    """As many instances as the jobs can reserve: Fig. 11 has 1,000 for up to 50 jobs."""
    capacities = (_times(INSTANCE, MOST_INSTANCES * max(jobs, FEW_JOBS[-1])),)
    return [Interval(jobs, kind, seed, capacities) for seed in _seeds(quick)]


def tasks(quick: bool) -> list[Interval]:
    """Every run, the longest first."""
    over_jobs = [
        run
        for jobs in sorted({*JOBS, *FEW_JOBS}, reverse=True)
        for kind in KINDS
        for run in _over_jobs(jobs, kind, quick)
    ]
    return over_jobs + [run for kind in KINDS for run in _over_capacity(kind, quick)]


# -- tables -------------------------------------------------------------------------------------------------


def _of_seeds(runs: Sequence[Interval], found: Found, name: str, at: int = 0) -> Floats:
    return np.array([found[run].total[name][at] for run in runs])


def _mean(runs: Sequence[Interval], found: Found, name: str, at: int = 0) -> float:
    return float(_of_seeds(runs, found, name, at).mean())


def _row(
    kind: bool, number: int, runs: Sequence[Interval], found: Found, at: int, known: theirs.Totals
) -> _Row:
    ours = {name: _mean(runs, found, name, at) for name in NAMES}
    ahead = _of_seeds(runs, found, SMD, at) - _of_seeds(runs, found, OPTIMUS, at)
    error = float(ahead.std(ddof=1)) / np.sqrt(len(runs)) / ours[OPTIMUS]
    return _Row(kind, number, ours, error, known)


def _kind(synchronous: bool) -> str:
    return "sync" if synchronous else "async"


class _Row(NamedTuple):
    """Mean totals of one setting, theirs beside."""

    kind: bool
    number: int
    ours: dict[str, float]
    error: float  # standard error of SMD / Optimus
    theirs: theirs.Totals


def _by_capacity(quick: bool, found: Found) -> list[_Row]:
    rows = []
    for kind in KINDS:
        runs = _over_capacity(kind, quick)
        for at, units in enumerate(UNITS):
            rows.append(_row(kind, units, runs, found, at, theirs.BY_CAPACITY[kind, units]))
    return rows


def _by_jobs(quick: bool, found: Found) -> list[_Row]:
    rows = []
    for kind in KINDS:
        for jobs in JOBS:
            runs = _over_jobs(jobs, kind, quick)
            rows.append(_row(kind, jobs, runs, found, 0, theirs.BY_JOBS[kind, jobs]))
    return rows


def _totals(name: str, title: str, axis: str, rows: Sequence[_Row], note: str) -> Table:
    cells: list[list[Cell]] = [
        [_kind(row.kind), row.number, *(row.ours[who] for who in NAMES), *row.theirs] for row in rows
    ]
    ours = [Heading(who, WHOLE) for who in NAMES]
    known = [Heading(f"their {who}", WHOLE) for who in NAMES[:3]]
    return Table(name, title, [Heading("training"), Heading(axis), *ours, *known], cells, note)


def _gains(name: str, title: str, axis: str, rows: Sequence[_Row]) -> Table:
    cells: list[list[Cell]] = []
    for row in rows:
        smd, esw, optimus = row.theirs
        over_esw, over_optimus, over_time = (
            row.ours[SMD] / row.ours[who] for who in (ESW, OPTIMUS, OPTIMUS_TIME)
        )
        own = [over_esw, smd / esw, over_optimus, row.error, smd / optimus, over_time]
        cells.append([_kind(row.kind), row.number, *own])
    columns = [
        Heading("training"),
        Heading(axis),
        Heading("SMD/ESW", RATIO),
        Heading("their SMD/ESW", RATIO),
        Heading("SMD/Optimus", RATIO),
        Heading("+-", PART),
        Heading("their SMD/Optimus", RATIO),
        Heading("SMD/Optimus by time", "{:.4f}x"),
    ]
    note = "+-: standard error over the seeds. Optimus by time does not stop where utility is flat."
    return Table(name, title, columns, cells, note)


def _of_optimum(quick: bool, found: Found) -> Table:
    cells: list[list[Cell]] = []
    for kind in KINDS:
        for jobs in FEW_JOBS:
            runs = _over_jobs(jobs, kind, quick)
            ratio = _mean(runs, found, SMD) / _mean(runs, found, OPTIMUM)
            least = min(found[run].total[SMD][0] / found[run].total[OPTIMUM][0] for run in runs)
            cells.append([_kind(kind), jobs, ratio, least, theirs.OF_OPTIMUM[kind, jobs]])
    heads = ("SMD/optimum", "least of all seeds", "theirs")
    columns = [Heading("training"), Heading("jobs"), *(Heading(head, PART) for head in heads)]
    return Table("optimum", "Utility of SMD as part of the optimum (Fig. 11)", columns, cells)


def _use(quick: bool, found: Found) -> Table:
    cells: list[list[Cell]] = []
    for kind in KINDS:
        for jobs in JOBS:
            used = float(np.mean([found[run].used[0] for run in _over_jobs(jobs, kind, quick)]))
            cells.append([_kind(kind), jobs, used, theirs.USED[kind, jobs]])
    columns = [Heading("training"), Heading("jobs"), Heading("used/reserved", PART), Heading("theirs", PART)]
    note = "Mean of GPUs, vCPUs, memory and storage."
    return Table("use", "What SMD's jobs use of what they reserve (Fig. 12)", columns, cells, note)


def tables(quick: bool, found: Found) -> list[Table]:
    """All tables of this file."""
    seeds = f"Means over {len(_seeds(quick))} seeds; eps = {EPS:g}."
    by_capacity, by_jobs = _by_capacity(quick, found), _by_jobs(quick, found)
    units = f"{UNITS_JOBS} jobs. One unit: 3,400 vCPUs, 600 GPUs, 1,400 GB memory, 1,200 GB storage. {seeds}"
    room = f"Capacity: {MOST_INSTANCES} instances per job, so that all fit. {seeds}"
    return [
        _totals("capacity", "Total utility over capacity (Figs. 7, 8)", "units", by_capacity, units),
        _gains("capacity_gains", "Gain of SMD over capacity", "units", by_capacity),
        _totals("jobs", "Total utility over jobs (Figs. 9, 10)", "jobs", by_jobs, room),
        _gains("jobs_gains", "Gain of SMD over jobs", "jobs", by_jobs),
        _of_optimum(quick, found),
        _use(quick, found),
    ]


def pictures(tables: Sequence[Table]) -> dict[str, bytes]:
    """Return file name -> PNG."""
    return draw({table.name: table for table in tables})
