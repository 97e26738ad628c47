"""Lists of configurations (workers by GPU type) that jobs may choose from, and the cheapest at given prices.

A list is complete for small cases and else sparse: a grid of counts, which loses at most its own step
(rounding every count down keeps 1 / (1 + step) of the speed and needs no more than before), or a sample
(`samples`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import COUNT
from trainyard.policy.types.market.costs import Costs


class Menu(NamedTuple):
    """What some jobs may choose from."""

    jobs: Ints  # (G,)
    configs: Ints  # (G, Q, M), or (1, Q, M) if all choose from the same
    cost: Floats  # (G, Q)


class Offer(NamedTuple):
    """The cheapest configuration of every job at given prices, and a bound for all that there are."""

    configs: Ints  # (S, M)
    cost: Floats  # (S,)
    bound: Floats  # (S,): no configuration has less cost + price than this


class Lists:
    """Pricing by looking through lists. What a job holds is always on its list."""

    def __init__(self, costs: Costs, menus: Sequence[Menu]) -> None:
        self.costs = costs
        self.menus = menus
        every_job = np.arange(costs.jobs)
        holds = costs.held.any(axis=1)
        self._held_cost = np.where(holds, costs.of(every_job, costs.held), np.inf)

    def cheapest(self, prices: Floats) -> Offer:
        """Return every job's best choice at these prices."""
        costs = self.costs
        configs: Ints = costs.held.copy()
        cost: Floats = self._held_cost.copy()
        value = cost + configs @ prices
        for menu in self.menus:
            total = menu.cost + menu.configs @ prices
            pick = total.argmin(axis=1)
            here = np.arange(len(menu.jobs))
            better = total[here, pick] < value[menu.jobs]
            jobs, pick, here = menu.jobs[better], pick[better], here[better]
            value[jobs] = total[here, pick]
            cost[jobs] = menu.cost[here, pick]
            configs[jobs] = menu.configs[here if len(menu.configs) > 1 else 0, pick]
        bound = np.minimum(value, costs.wait)
        return Offer(configs, cost, bound)

    def within(self, job: int, prices: Floats, most: float, room: Ints) -> tuple[Ints, Floats]:
        """Return all choices of a job that fit into a room, with their costs, up to a cost + price."""
        configs, cost = [self.costs.held[job][None]], [self._held_cost[job : job + 1]]
        for menu in self.menus:
            for at in np.flatnonzero(menu.jobs == job).tolist():
                configs.append(menu.configs[at if len(menu.configs) > 1 else 0])
                cost.append(menu.cost[at])
        every, costs = np.concatenate(configs), np.concatenate(cost)
        fits = (every <= room).all(axis=1) & np.isfinite(costs)
        fits &= costs + every @ prices <= most
        return every[fits], costs[fits]


def shared_menu(costs: Costs, jobs: Ints, configs: Ints) -> Menu:
    """Offer the same configurations to some jobs."""
    pairs = np.repeat(jobs, len(configs)), np.tile(configs, (len(jobs), 1))
    seconds = costs.times.seconds(*pairs).reshape(len(jobs), len(configs))
    return Menu(jobs, configs[None], costs.value(jobs, seconds + costs.restart[jobs][:, None]))


def all_configs(capacity: Ints, most: int) -> Ints:
    """Every configuration with 1 to `most` workers within capacity."""
    counts = [np.arange(min(int(c), most) + 1) for c in capacity]
    rows = np.zeros((1, 0), dtype=np.int64)
    for count in counts:  # type by type, so that nothing larger than the answer is ever built
        rows = np.column_stack([np.repeat(rows, len(count), axis=0), np.tile(count, len(rows))])
        rows = rows[rows.sum(axis=1) <= most]
    found: Ints = rows[rows.sum(axis=1) > 0]
    return found


def grid(most: int, step: float) -> Ints:
    """Counts 0, 1, ... each at most `step` larger than the one before, or its successor."""
    counts = [0, 1] if most else [0]
    while counts[-1] < most:
        counts.append(int(counts[-1] * (1.0 + step)) + 1)
    return np.array([c for c in counts if c <= most], dtype=np.int64)


def binary(most: int) -> Ints:
    """Counts 0, 1, 2, 3, 4, 6, 8, 12, ...: powers of two, which share nodes well, and halfway between."""
    powers = 2 ** np.arange(max(most, 1).bit_length(), dtype=np.int64)
    counts = np.unique(np.concatenate([[0], powers, 3 * powers // 2]))
    return counts[counts <= most]


def grid_configs(capacity: Ints, most: int, counts: Callable[[int], Ints]) -> Ints:
    """Configurations of up to three types with counts from a grid.

    At given prices an optimal fractional choice mixes at most two types, so that with many types it is not
    worth listing what mixes more.
    """
    types = len(capacity)
    found = [np.zeros((0, types), dtype=np.int64)]
    for chosen in combinations(range(types), min(types, 3 if types <= 3 else 2)):
        axes = np.meshgrid(*[counts(min(int(capacity[t]), most)) for t in chosen], indexing="ij")
        rows = np.zeros((axes[0].size, types), dtype=np.int64)
        for t, count in zip(chosen, axes, strict=True):
            rows[:, t] = count.ravel()
        found.append(rows)
    rows = np.unique(np.concatenate(found), axis=0)
    size = rows.sum(axis=1)
    listed: Ints = rows[(size > 0) & (size <= most)]
    return listed


def largest_remainder(share: Floats, total: Ints) -> Ints:
    """Round shares along the last axis to whole numbers that keep their sum."""
    down: Ints = np.floor(share + COUNT).astype(np.int64)
    missing = total - down.sum(axis=-1)
    rank = np.argsort(np.argsort(down - share, axis=-1, kind="stable"), axis=-1, kind="stable")
    whole: Ints = down + (rank < missing[..., None])
    return whole
