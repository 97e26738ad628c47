"""Single decisions: doubling and "one more worker" beside the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.doubling import double, liked
from trainyard.policy.size.growth import NOTHING, Grower
from trainyard.policy.size.optimus import one_by_one
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.ring.curves import CURVES, draw_curve, trap
from trainyard.reproduce.ring.oracle import least_total_s
from trainyard.reproduce.ring.scale import Scale

BATCH = 100  # instances
CLUSTERS = (16, 32, 64)  # GPUs
MOST_JOBS = 12
WORK = (1.0, 10.0)
EQUAL = 1e-9
RATIO, WORST, PART = "{:.3f}", "{:.2f}", "{:.0%}"


class Instance(NamedTuple):
    """Jobs among which GPUs are to be divided."""

    work: tuple[float, ...]
    speeds: tuple[Floats, ...]  # with 1, 2, ... workers
    gpus: int

    def seconds(self) -> list[Floats]:
        """Return how long each job takes with 1, 2, ... workers."""
        return [work / speed for work, speed in zip(self.work, self.speeds, strict=True)]

    def total_s(self, sizes: Ints) -> float:
        """Return the sum of what jobs take."""
        return float(sum(each[size - 1] for each, size in zip(self.seconds(), sizes, strict=True)))

    def by_doubling(self) -> Ints:
        """Divide by the doubling heuristic."""
        sizes, jobs = self._powers(), len(self.work)
        return double([sizes] * jobs, self._at(sizes), [1.0] * jobs, self.gpus)

    def by_adding(self) -> Ints:
        """Divide by one more worker at a time."""
        worker = (1.0 / self.gpus,) * 3
        speeds = [np.concatenate([[0.0], speed])[: self.gpus + 1, None] for speed in self.speeds]
        return one_by_one([Grower(table, (1, 0), worker, NOTHING) for table in speeds], self.work, {})[:, 0]

    def optimum_s(self) -> float:
        """Return the least sum of all divisions."""
        sizes = tuple(range(1, self.gpus + 1))
        return least_total_s([sizes] * len(self.work), self._at(sizes), self.gpus)

    def power_optimum_s(self) -> float:
        """Return the least sum of all divisions into powers of two."""
        sizes = self._powers()
        return least_total_s([sizes] * len(self.work), self._at(sizes), self.gpus)

    def _powers(self) -> tuple[int, ...]:
        return liked(1, self.gpus)

    def _at(self, sizes: Sequence[int]) -> list[list[float]]:
        return [each[np.array(sizes) - 1].tolist() for each in self.seconds()]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some random instances of one kind of curve."""

    curve: str
    seed: int

    def carry_out(self) -> Floats:
        """Return a row for each instance: see `_ratios`."""
        rng = np.random.default_rng(self.seed)
        return np.array([_ratios(draw_instance(self.curve, rng)) for _ in range(BATCH)])


Decided = Mapping[Batch, Floats]


def draw_instance(curve: str, rng: np.random.Generator) -> Instance:
    """Draw jobs and a cluster."""
    jobs, gpus = int(rng.integers(2, MOST_JOBS + 1)), int(rng.choice(CLUSTERS))
    work = tuple(rng.uniform(*WORK, jobs).tolist())
    return Instance(work, tuple(draw_curve(curve, rng, gpus) for _ in work), gpus)


def _ratios(instance: Instance) -> tuple[float, float, float]:
    """Doubling and +1 over the optimum, and doubling over that of powers of two."""
    doubling, adding = (instance.total_s(sizes) for sizes in (instance.by_doubling(), instance.by_adding()))
    optimum = instance.optimum_s()
    return doubling / optimum, adding / optimum, doubling / instance.power_optimum_s()


def batches(scale: Scale) -> list[Batch]:
    """Every batch that the tables need."""
    return [batch for curve in CURVES for batch in _of(curve, scale)]


def _of(curve: str, scale: Scale) -> list[Batch]:
    return [Batch(curve, seed) for seed in scale.batches]


def tables(scale: Scale, decided: Decided) -> list[Table]:
    """All tables of this file."""
    return [_examples(), _optimum(scale, decided)]


def _optimum(scale: Scale, decided: Decided) -> Table:
    rows: list[list[Cell]] = []
    for curve in CURVES:
        ratios = np.concatenate([decided[batch] for batch in _of(curve, scale)])
        doubling, adding = ratios[:, 0], ratios[:, 1]
        rows.append(
            [
                curve,
                *np.array([ratios.mean(axis=0), ratios.max(axis=0)]).T.ravel().tolist(),
                float(np.mean(doubling < adding * (1 - EQUAL))),
                float(np.mean(adding < doubling * (1 - EQUAL))),
            ]
        )
    names = ("doubling", "+1", "powers")
    columns = [
        Heading("curves"),
        *(
            Heading(f"{who} {which}", form)
            for who in names
            for which, form in (("mean", RATIO), ("worst", WORST))
        ),
        Heading("wins", PART),
        Heading("loses", PART),
    ]
    instances = BATCH * len(scale.batches)
    note = (
        f"Sum of remaining times over the optimum, {instances} random instances each: 2 to {MOST_JOBS} jobs "
        "of work 1 to 10 on 16, 32 or 64 GPUs. Powers: doubling over the optimum among powers of two. "
        "Wins, loses: how often doubling is better or worse than +1."
    )
    return Table("optimum", "Single decisions beside the optimum", columns, rows, note)


def _examples() -> Table:
    rows: list[list[Cell]] = []
    for name, instance in _known():
        doubling, adding, optimum = instance.by_doubling(), instance.by_adding(), instance.optimum_s()
        sizes = (" ".join(map(str, chosen.tolist())) for chosen in (doubling, adding))
        totals = (instance.total_s(chosen) / optimum for chosen in (doubling, adding))
        rows.append([name, instance.gpus, *sizes, *totals])
    columns = [
        Heading("jobs"),
        Heading("GPUs"),
        Heading("doubling"),
        Heading("+1"),
        Heading("doubling/optimum", RATIO),
        Heading("+1/optimum", RATIO),
    ]
    return Table("examples", "Three decisions: GPUs of each job", columns, rows)


def _known() -> list[tuple[str, Instance]]:
    """Small cases whose answers can be told by hand."""
    few, many = np.arange(1, 17), np.arange(1, 65)
    powers = tuple(np.arange(1.0, 9.0) ** exponent for exponent in (0.9, 0.5, 0.7))
    work = (5.0, 4.0, 3.0, 2.0, 1.0, 1.0)
    return [
        ("trap, one job", Instance((1.0,), (trap(few),), 16)),
        ("trap, work 5 4 3 2 1 1", Instance(work, (trap(many),) * 6, 64)),
        ("w^0.9, w^0.5, w^0.7, work 10 8 6", Instance((10.0, 8.0, 6.0), powers, 8)),
    ]
