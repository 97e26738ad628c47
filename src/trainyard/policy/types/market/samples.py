"""Configurations drawn at random, for jobs of which nothing is known but what a configuration costs.

A sample rarely holds the very best configuration, but one near it: from the cheapest one drawn, pricing goes
on to cheaper neighbours, one worker at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import FINE_PART, LEAST_POSITIVE
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.menus import Lists, Menu, Offer, largest_remainder
from trainyard.policy.types.market.polish import changes_of, single_steps

WALK = 20  # steps to neighbours, at most
UNSEEN = 0.98  # what is not in the sample may cost this part of the best that is
NEAR = 8  # choices whose neighbours are looked at too where jobs are placed one by one


class Samples(Lists):
    """Pricing by a sample, and by what lies around the best of it."""

    def __init__(self, costs: Costs, menus: Sequence[Menu]) -> None:
        super().__init__(costs, menus)
        self._changes = changes_of(single_steps(costs.types), costs.types)

    def cheapest(self, prices: Floats) -> Offer:
        """Return every job's best choice at these prices, as far as one can see."""
        offer, costs = super().cheapest(prices), self.costs
        configs, cost, value = offer.configs, offer.cost, offer.cost + offer.configs @ prices
        moving = np.flatnonzero(np.isfinite(value))
        for _ in range(WALK):
            if not moving.size:
                break
            tried = configs[moving, None] + self._changes
            beyond = ((tried < 0) | (tried > costs.capacity)).any(axis=2, keepdims=True)
            tried = np.where(beyond, configs[moving, None], tried)
            who = np.repeat(moving, len(self._changes))
            paid = costs.of(who, tried.reshape(-1, costs.types)).reshape(len(moving), -1)
            total = paid + tried @ prices
            here, pick = np.arange(len(moving)), total.argmin(axis=1)
            better = total[here, pick] < value[moving] * (1.0 - FINE_PART)
            moving, here, pick = moving[better], here[better], pick[better]
            configs[moving], cost[moving] = tried[here, pick], paid[here, pick]
            value[moving] = total[here, pick]
        return Offer(configs, cost, np.minimum(offer.bound, value) * UNSEEN)

    def within(self, job: int, prices: Floats, most: float, room: Ints) -> tuple[Ints, Floats]:
        """Return choices of a job that fit into a room, with their costs, and what lies around the best."""
        configs, cost = super().within(job, prices, most, room)
        for _ in range(2):
            best = configs[np.argsort(cost + configs @ prices, kind="stable")[:NEAR]]
            around = (best[:, None] + self._changes).reshape(-1, len(room))
            around = around[((around >= 0) & (around <= room)).all(axis=1)]
            configs = np.unique(np.concatenate([configs, around]), axis=0)
            cost = self.costs.of(np.full(len(configs), job), configs)
            near = np.isfinite(cost) & (cost + configs @ prices <= most)
            configs, cost = configs[near], cost[near]
        return configs, cost


def sampled_menu(costs: Costs, centre: Floats, count: int, most: int, generator: np.random.Generator) -> Menu:
    """Offer every job 1, 2, 4, ... workers of each type, and random mixtures around its centre."""
    jobs, types = costs.jobs, costs.types
    one_type = np.concatenate([np.eye(types, dtype=np.int64) << k for k in range(most.bit_length())])
    one_type = one_type[(one_type <= costs.capacity).all(axis=1)]
    size = np.exp(np.log(np.maximum(centre, 1.0))[:, None] + 0.6 * generator.standard_normal((jobs, count)))
    n = np.clip(np.rint(size), 1, most).astype(np.int64)
    # Half of the mixtures have nearly one type, half are even.
    alpha = np.where(np.arange(count) % 2 == 0, 0.15, 1.0)[None, :, None]
    share = generator.standard_gamma(np.broadcast_to(alpha, (jobs, count, types))) + LEAST_POSITIVE
    share *= costs.capacity > 0
    share /= share.sum(axis=2, keepdims=True)
    drawn = np.minimum(largest_remainder(share * n[:, :, None], n), costs.capacity)
    configs = np.concatenate([np.broadcast_to(one_type, (jobs, *one_type.shape)), drawn], axis=1)
    width = configs.shape[1]
    who = np.repeat(np.arange(jobs), width)
    seconds = costs.times.seconds(who, configs.reshape(-1, types)).reshape(jobs, width)
    every_job = np.arange(jobs)
    return Menu(every_job, configs, costs.value(every_job, seconds + costs.restart[:, None]))
