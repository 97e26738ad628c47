"""What fairness costs: a cap on finish times, or a weight on Jain's index, against the fastest assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trainyard.model.fairness import jain
from trainyard.policy.types.market.category import Fairness, search_sampled
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.fairness import equal_share_s
from trainyard.policy.types.market.prices import trade
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.market.figures import draw_fairness
from trainyard.reproduce.market.instances import instance

SIZES = ((20, 32, 13), (50, 128, 24), (200, 512, 32))
CAPS = (None, 3.0, 2.0, 1.5, 1.2, 1.0)
BETAS = (1.0, 0.5, 0.0)
SAMPLES = 200
FULL_SEEDS, QUICK_SEEDS = 5, 2


class Outcome(NamedTuple):
    """Average time above the fastest, and how fair."""

    above: float
    jain: float
    jain_inverse: float
    worst: float


@dataclass(frozen=True, slots=True)
class Frontier:
    """One instance under every cap and weight."""

    jobs: int
    workers: int
    most: int
    seed: int

    def carry_out(self) -> dict[str, Outcome]:
        """Solve it."""
        rings, costs = instance(self.jobs, self.workers, self.seed, self.most)
        fair_s, every_job = equal_share_s(rings, costs.capacity), np.arange(self.jobs)
        mixes = {}
        for cap in CAPS:
            capped = costs if cap is None else replace(costs, limit=cap * fair_s)
            mixes["no cap" if cap is None else f"cap {cap:g}"] = trade(capped, ClosedForm(capped, rings)).mix
        if self.jobs <= SIZES[0][0]:
            for beta in BETAS:
                rng = np.random.default_rng(self.seed)
                weighed = search_sampled(
                    costs, rings, SAMPLES, rng, fairness=Fairness(fair_s, beta), theta=0.5, spread=5.0
                )
                mixes[f"categories, beta {beta:g}"] = weighed.mix
        least = costs.total(mixes["no cap"])
        found = {}
        for name, mix in mixes.items():
            ratio = rings.seconds(every_job, mix) / fair_s
            above = 100 * (costs.total(mix) / least - 1)
            found[name] = Outcome(above, float(jain(ratio)), float(jain(1 / ratio)), float(ratio.max()))
        return found


def _runs(quick: bool) -> list[Frontier]:
    seeds = range(QUICK_SEEDS if quick else FULL_SEEDS)
    return [Frontier(*size, seed) for size in (SIZES[:2] if quick else SIZES) for seed in seeds]


def tasks(quick: bool) -> list[Frontier]:
    """Every run, the longest first."""
    return _runs(quick)[::-1]


def tables(quick: bool, found: Mapping[Frontier, dict[str, Outcome]]) -> list[Table]:
    """Time and fairness by size and cap."""
    rows: list[list[Cell]] = []
    for size in SIZES[:2] if quick else SIZES:
        runs = [found[run] for run in _runs(quick) if (run.jobs, run.workers, run.most) == size]
        for name in runs[0]:
            mean = Outcome(*np.mean([run[name] for run in runs], axis=0).tolist())
            rows.append([f"{size[0]} x {size[1]}", name, *mean])
    columns = [
        Heading("jobs x workers"),
        Heading("fairness"),
        Heading("avg JCT above fastest %", "{:.2f}"),
        Heading("Jain of ratios", "{:.3f}"),
        Heading("Jain of speed-ups", "{:.3f}"),
        Heading("worst ratio", "{:.2f}"),
    ]
    note = (
        "Ratio: completion time by that with an equal share of every type. A cap is soft: beyond it a second "
        "counts elevenfold."
    )
    return [Table("fairness", "What fairness costs", columns, rows, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """The frontier."""
    return draw_fairness(tables[0])
