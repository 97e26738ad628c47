"""What the proportional split of a batch is worth, over the bandwidth of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.prices import trade
from trainyard.policy.types.market.rings import Rings
from trainyard.reproduce.findings import Heading, Table
from trainyard.reproduce.market.figures import draw_split
from trainyard.reproduce.market.greedy import equal_shares
from trainyard.reproduce.market.instances import instance

GBPS = (1.0, 5.0, 10.0, 25.0, 100.0)
JOBS, WORKERS, MOST = 50, 128, 48
FULL_SEEDS, QUICK_SEEDS = 5, 2


class Outcome(NamedTuple):
    """Average time with equal split by that with proportional split, and how many jobs mix types."""

    market: float
    random: float
    mixed: float


@dataclass(frozen=True, slots=True)
class Splitting:
    """One instance at one bandwidth."""

    gbps: float
    seed: int

    def carry_out(self) -> Outcome:
        """Place by the market and at random, and split both ways."""
        rings, costs = instance(JOBS, WORKERS, self.seed, MOST, gbps=self.gbps)
        mix = trade(costs, ClosedForm(costs, rings)).mix
        chance = equal_shares(costs, np.random.default_rng(self.seed))
        mixed = float(((mix > 0).sum(axis=1) > 1).mean())
        return Outcome(_penalty(rings, mix), _penalty(rings, chance), mixed)


def _penalty(rings: Rings, mix: Ints) -> float:
    every_job = np.arange(len(mix))
    return float(equal_split_s(rings, mix).sum() / rings.seconds(every_job, mix).sum())


def equal_split_s(rings: Rings, mix: Ints) -> Floats:
    """Completion times if every worker gets as many samples, so that the slowest decides."""
    size = mix.sum(axis=1)
    slowest = np.where(mix > 0, rings.rho, np.inf).min(axis=1)
    took: Floats = rings.work / (size * slowest) + rings.extra[np.arange(len(mix)), size]
    return took


def tasks(quick: bool) -> list[Splitting]:
    """Every run."""
    return [Splitting(gbps, seed) for gbps in GBPS for seed in range(QUICK_SEEDS if quick else FULL_SEEDS)]


def tables(quick: bool, found: Mapping[Splitting, Outcome]) -> list[Table]:
    """The penalty of the equal split by bandwidth."""
    rows = []
    for gbps in GBPS:
        mean = np.mean([found[run] for run in tasks(quick) if run.gbps == gbps], axis=0)
        rows.append([gbps, float(mean[0]), float(mean[1]), 100 * float(mean[2])])
    columns = [
        Heading("Gb/s", "{:g}"),
        Heading("market, equal / proportional", "{:.3f}x"),
        Heading("random placement, equal / proportional", "{:.3f}x"),
        Heading("jobs that mix types %", "{:.0f}"),
    ]
    note = (
        f"Average completion time of {JOBS} jobs on {WORKERS} workers. The market mixes types only where it "
        "pays; a placement that does not ask needs the proportional split more."
    )
    return [Table("split", "Proportional against equal split of the batch", columns, rows, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """The penalty over bandwidth."""
    return draw_split(tables[0])
