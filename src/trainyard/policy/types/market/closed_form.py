"""The cheapest configuration at given prices, without any list, for jobs that follow the paper's formula.

At a fixed number of workers n and given prices, the best fractional mixture has at most two types: it is the
lowest point of work / R + price over the convex hull of the points n x (rho_t, p_t), which lies on an edge.
On the edge from t to u it has R = sqrt(work x (rho_u - rho_t) / (p_u - p_t)), clipped to the edge. Its value
bounds every configuration from below; rounding it up and down gives configurations that one can have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import COUNT
from trainyard.policy.types.market.costs import STEEP, Costs
from trainyard.policy.types.market.menus import Offer, all_configs
from trainyard.policy.types.market.rings import Rings

BLOCK = 2_000_000  # numbers looked at in one go: beyond that the cache is too small
ALL_LISTED_UP_TO = 2_000  # configurations that are all listed where jobs are placed one by one


class ClosedForm:
    """Pricing by formula; cost O(jobs x sizes x types^2) and no memory to speak of."""

    def __init__(self, costs: Costs, rings: Rings) -> None:
        self.costs = costs
        self.rings = rings
        holds = costs.held.any(axis=1)
        self._held_cost = np.where(holds, costs.of(np.arange(costs.jobs), costs.held), np.inf)
        self._edges = [(t, u) for t in range(costs.types) for u in range(t + 1)]

    def cheapest(self, prices: Floats) -> Offer:
        """Return every job's best choice at these prices."""
        parts = [self._some(jobs, prices) for jobs in self._blocks()]
        configs, cost, bound = (np.concatenate(column) for column in zip(*parts, strict=True))
        held = self.costs.held
        keep = self._held_cost + held @ prices < cost + configs @ prices
        configs[keep], cost[keep] = held[keep], self._held_cost[keep]
        return Offer(
            configs, cost, np.minimum(bound, np.minimum(self._held_cost + held @ prices, self.costs.wait))
        )

    def within(self, job: int, prices: Floats, most: float, room: Ints) -> tuple[Ints, Floats]:
        """Return choices that fit into a room, with their costs, up to a cost + price.

        All of them if they are few, else such of two types.
        """
        few = np.prod(np.minimum(room, self.rings.most) + 1.0) <= ALL_LISTED_UP_TO
        every = all_configs(room, self.rings.most) if few else self._two_types(job, prices)
        every = np.concatenate([self.costs.held[job][None], every])
        every = np.unique(every[(every <= room).all(axis=1) & every.any(axis=1)], axis=0)
        cost = self.costs.of(np.full(len(every), job), every)
        near = np.isfinite(cost) & (cost + every @ prices <= most)
        return every[near], cost[near]

    def _two_types(self, job: int, prices: Floats) -> Ints:
        """Around the best split between every two types, for every size."""
        rings, types = self.rings, self.costs.types
        n = np.arange(1, rings.most + 1)
        sizes = n.astype(np.float64)
        found = []
        for t, u in self._edges:
            slow, fast = sorted((t, u), key=lambda e: float(rings.rho[job, e]))
            edge = rings.rho[job, slow], rings.rho[job, fast], prices[slow], prices[fast]
            x = _best_split(self.costs.weight[job] * rings.work[job], sizes, *(np.array(e) for e in edge))
            for more in (-1, 0, 1, 2):
                configs = np.zeros((len(n), types), dtype=np.int64)
                of_fast = np.clip(np.floor(x).astype(np.int64) + more, 0, n)
                configs[n - 1, fast] += of_fast
                configs[n - 1, slow] += n - of_fast
                found.append(configs)
        return np.concatenate(found)

    def _blocks(self) -> Iterator[Ints]:
        step = max(1, BLOCK // (self.rings.most * len(self._edges)))
        for start in range(0, self.costs.jobs, step):
            yield np.arange(start, min(start + step, self.costs.jobs))

    def _some(self, jobs: Ints, prices: Floats) -> tuple[Ints, Floats, Floats]:
        costs, best = self.costs, np.full(len(jobs), np.inf)
        cost, configs = best.copy(), np.zeros((len(jobs), costs.types), dtype=np.int64)
        weight, slack = costs.weight[jobs], costs.weight[jobs] * STEEP * costs.limit[jobs]
        bound = self._edge_bounds(jobs, weight, prices, configs, cost)
        if np.isfinite(costs.limit[jobs]).any():
            # Beyond its limit a job pays as if its work were (1 + STEEP) times as much, less a constant.
            with np.errstate(invalid="ignore"):
                steep = self._edge_bounds(jobs, weight * (1.0 + STEEP), prices, configs, cost) - slack
            bound = np.fmax(bound, np.where(np.isfinite(costs.limit[jobs]), steep, -np.inf))
        return configs, cost, bound

    def _edge_bounds(self, jobs: Ints, weight: Floats, prices: Floats, configs: Ints, cost: Floats) -> Floats:
        """Lower bounds with times weighted so; better configurations found on the way go to the last two."""
        rings, here = self.rings, np.arange(len(jobs))
        n = np.arange(1, rings.most + 1, dtype=np.float64)
        work = (weight * rings.work[jobs])[:, None]
        extra = weight[:, None] * (rings.extra[jobs, 1:] + self.costs.restart[jobs][:, None])
        bound = np.full(len(jobs), np.inf)
        for t, u in self._edges:
            swap = rings.rho[jobs, t] > rings.rho[jobs, u]
            ends = np.where(swap, u, t), np.where(swap, t, u)  # the slower and the faster type
            edge = [rings.rho[jobs, e][:, None] for e in ends] + [prices[e][:, None] for e in ends]
            extra_here = np.where((edge[0] <= 0) & (t != u), np.inf, extra)
            x = _best_split(work, n, *edge)
            value = _value(work, n, x, *edge) + extra_here
            at = value.argmin(axis=1)
            bound = np.minimum(bound, value[here, at])
            self._round(jobs, ends, at + 1, x[here, at], prices, configs, cost)
            # With whole workers another size may be the best.
            at = (_value(work, n, np.rint(x), *edge) + extra_here).argmin(axis=1)
            self._round(jobs, ends, at + 1, x[here, at], prices, configs, cost)
        return bound

    def _round(
        self,
        jobs: Ints,
        ends: tuple[Ints, Ints],
        n: Ints,
        x: Floats,
        prices: Floats,
        configs: Ints,
        cost: Floats,
    ) -> None:
        """Try x workers of the faster type, rounded both ways, and the rest of the slower one."""
        here = np.arange(len(jobs))
        for fast in (np.floor(x + COUNT).astype(np.int64), np.ceil(x - COUNT).astype(np.int64)):
            tried = np.zeros_like(configs)
            tried[here, ends[1]] += fast
            tried[here, ends[0]] += n - fast
            tried = np.minimum(tried, self.costs.capacity)
            paid = self.costs.of(jobs, tried)
            better = paid + tried @ prices < cost + configs @ prices
            configs[better], cost[better] = tried[better], paid[better]


def _best_split(work: Floats, n: Floats, slow: Floats, fast: Floats, low: Floats, high: Floats) -> Floats:
    """How many of n workers should be of the faster type, at these prices of the slower and the faster."""
    faster = fast - slow
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.sqrt(work * faster / np.maximum(high - low, 0.0))
        x = np.where(faster > 0, (speed - n * slow) / faster, 0.0)
    split: Floats = np.clip(np.nan_to_num(x, nan=0.0, posinf=np.inf), 0.0, n)
    return split


def _value(
    work: Floats, n: Floats, x: Floats, slow: Floats, fast: Floats, low: Floats, high: Floats
) -> Floats:
    """Seconds of computing, and the price, with x workers of the faster type."""
    with np.errstate(divide="ignore"):
        value: Floats = work / ((n - x) * slow + x * fast)
    value += (n - x) * low + x * high
    return value
