"""The type-price engine: GPU types are goods, a price per worker of each clears the market.

Jobs buy one configuration each. The prices are the duals of the linear program in which a job may mix
configurations; it is solved by column generation, every job asking for its cheapest configuration at the
prices of the last round. At most as many jobs as there are types mix in the end: all others are settled,
these few are placed exactly, and a local search over all jobs follows. What all jobs would pay at any
prices, less what the goods are worth, bounds the best possible assignment from below: the certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART, ROUGH_PART, WHOLE_SHARE
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.master import Columns, Master, Mixture
from trainyard.policy.types.market.menus import Offer
from trainyard.policy.types.market.polish import polish

ROUNDS = 60
CLOSE = 1e-3  # of the cost: an assignment this close to the bound is left as it is, unless `exact`
SMALL = 48  # jobs up to which all are chosen for anew in the end
LEAST_EACH, ENOUGH = 30, 1500  # configurations of each job that are looked at then, at least; and of all jobs
QUICK, NODES = 100, 20_000  # nodes of the search tree, without and with `exact`
LADDER = 2.0 ** np.arange(-3, 4)  # multiples of the first guess at prices that first offers are made at


class Pricing(Protocol):
    """Whatever finds the cheapest configuration of every job."""

    def cheapest(self, prices: Floats) -> Offer:
        """Return every job's best choice at these prices."""

    def within(self, job: int, prices: Floats, most: float, room: Ints) -> tuple[Ints, Floats]:
        """Return choices of a job that fit into a room, with their costs, up to a cost + price."""


class Assignment(NamedTuple):
    """Workers of every job by type, with its certificate."""

    mix: Ints  # (S, M)
    cost: float
    bound: float  # no assignment costs less
    prices: Floats
    fractional: int = 0  # jobs that mixed configurations before rounding
    rounds: int = 0

    @property
    def gap(self) -> float:
        """How far above the bound, relatively."""
        return max(self.cost - self.bound, 0.0) / self.bound if self.bound > 0 else 0.0


class Cleared(NamedTuple):
    """The market at its prices, before rounding."""

    master: Master
    mixture: Mixture
    bound: float
    prices: Floats  # where the bound is
    rounds: int


def trade(
    costs: Costs, pricing: Pricing, guess: Floats | None = None, polished: bool = True, exact: bool = False
) -> Assignment:
    """Return an assignment of nearly the least cost. `guess` are prices to start from."""
    if not costs.jobs:
        return Assignment(costs.held[:0], 0.0, 0.0, np.zeros(costs.types))
    cleared = clear(costs, pricing, guess)
    mix, fractional = _rounded(costs, pricing, cleared)
    if polished:
        mix = polish(costs, _improved(costs, pricing, cleared, polish(costs, mix), exact))
    cost = costs.total(mix)
    return Assignment(mix, cost, min(cleared.bound, cost), cleared.prices, fractional, cleared.rounds)


def clear(costs: Costs, pricing: Pricing, guess: Floats | None = None) -> Cleared:
    """Generate columns until no job finds a better one at the prices."""
    every_job = np.arange(costs.jobs)
    first = first_offers(costs, pricing, guess)
    master = _master(costs, first)
    nothing = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    master.add(Columns(every_job, nothing, costs.wait))
    for columns in first:
        master.add(columns)
    bound, prices = -np.inf, np.zeros(costs.types)
    for rounds in range(1, ROUNDS + 1):
        mixture = master.mixture()
        offer = pricing.cheapest(mixture.prices)
        at = bound_at(costs, offer, mixture.prices)
        if at > bound:
            bound, prices = at, mixture.prices
        reduced = offer.cost + offer.configs @ mixture.prices - mixture.worth
        better = reduced < -PART * np.maximum(np.abs(mixture.worth), master.scale)
        done = mixture.value - bound <= ROUGH_PART * mixture.value
        if done or not better.any() or rounds == ROUNDS:
            break
        master.add(Columns(every_job[better], offer.configs[better], offer.cost[better]))
    return Cleared(master, mixture, bound, prices, rounds)


def bound_at(costs: Costs, offer: Offer, prices: Floats) -> float:
    """What all assignments cost at least, by what every job would choose at some prices."""
    return float(offer.bound.sum() - prices @ costs.capacity)


def _master(costs: Costs, first: Sequence[Columns]) -> Master:
    """A program in which leaving a job out costs more than all first offers together."""
    highest = np.zeros(costs.jobs)
    for columns in first:
        np.maximum.at(highest, columns.jobs, columns.cost)
    return Master(costs.jobs, costs.capacity, highest.mean() or 1.0, 2.0 * highest.sum() or 1.0)


def first_offers(costs: Costs, pricing: Pricing, guess: Floats | None) -> list[Columns]:
    """Every type singly, and what is cheapest at a few levels of prices."""
    every_job, found = np.arange(costs.jobs), []
    for single in np.eye(costs.types, dtype=np.int64):
        configs = np.tile(single, (costs.jobs, 1))
        cost = costs.of(every_job, configs)
        some = np.isfinite(cost) & bool((single <= costs.capacity).all())
        found.append(Columns(every_job[some], configs[some], cost[some]))
    levels = LADDER * 1.0 if guess is None else LADDER[2:5]
    for level in levels:
        offer = pricing.cheapest(level * (guess_prices(costs) if guess is None else guess))
        some = np.isfinite(offer.cost)
        found.append(Columns(every_job[some], offer.configs[some], offer.cost[some]))
    return found


def guess_prices(costs: Costs) -> Floats:
    """Prices if only speed counted: sizes are best in proportion to sqrt(work), and all pay alike."""
    every_job = np.arange(costs.jobs)
    cost = np.stack(
        [costs.of(every_job, np.tile(e, (costs.jobs, 1))) for e in np.eye(costs.types, dtype=np.int64)]
    )
    runs = np.isfinite(cost)
    least = np.where(runs.any(axis=0), cost.min(axis=0), 0.0)
    part = np.divide(least, cost, out=runs.astype(np.float64), where=runs & (cost > 0))
    speed = part.sum(axis=1) / np.maximum(runs.sum(axis=1), 1)
    total = float(np.sqrt(least).sum()) / max(float(speed @ costs.capacity), 1.0)
    prices: Floats = total**2 * speed
    return prices


def _rounded(costs: Costs, pricing: Pricing, cleared: Cleared) -> tuple[Ints, int]:
    """Settle jobs that take one configuration; place the few others, together, in what is left."""
    columns, share = cleared.master.columns(), cleared.mixture.share
    mix: Ints = np.zeros((costs.jobs, costs.types), dtype=np.int64)
    whole = share > 1.0 - WHOLE_SHARE
    mix[columns.jobs[whole]] = columns.configs[whole]
    mixed = np.setdiff1d(np.arange(costs.jobs), columns.jobs[whole])
    if mixed.size:
        room = costs.capacity - mix.sum(axis=0)
        mix[mixed] = _best_choice(pricing, cleared, mixed, room, np.full(len(mixed), np.inf), LEAST_EACH)
    return mix, int(mixed.size)


def _improved(costs: Costs, pricing: Pricing, cleared: Cleared, mix: Ints, exact: bool) -> Ints:
    """Choose anew for all jobs among the configurations that could be part of a better assignment.

    Whatever costs a job more at the prices than its best choice by more than the gap between the assignment
    and the bound cannot be. What is left is a small integer program.
    """
    cost = costs.total(mix)
    gap = cost - cleared.bound
    if gap <= (0.0 if exact else CLOSE) * cost or not (exact or costs.jobs <= SMALL):
        return mix
    paid = pricing.cheapest(cleared.prices).bound + gap * (1 + PART)
    every_job = np.arange(costs.jobs)
    few = None if exact else max(LEAST_EACH, ENOUGH // costs.jobs)
    best = _best_choice(pricing, cleared, every_job, costs.capacity, paid, few)
    return best if costs.total(best) < cost else mix


def _best_choice(
    pricing: Pricing, cleared: Cleared, jobs: Ints, room: Ints, most: Floats, few: int | None
) -> Ints:
    """Return configurations of some jobs that fit into a room together, of the least cost.

    Only those that cost each at most this much at the prices take part, and only the cheapest few of them.
    """
    known, prices = cleared.master.columns(), cleared.prices
    fits = (known.configs <= room).all(axis=1)
    total = known.cost + known.configs @ prices
    menus = []
    for at, job in enumerate(jobs.tolist()):
        here = np.flatnonzero((known.jobs == job) & fits & (total <= most[at]))
        more, its = pricing.within(job, prices, float(most[at]), room)
        configs, cost = np.concatenate([known.configs[here], more]), np.concatenate([known.cost[here], its])
        configs, first = np.unique(configs, axis=0, return_index=True)
        cost = cost[first]
        near = np.argsort(cost + configs @ prices, kind="stable")[:few]
        alone = np.flatnonzero(configs.sum(axis=1) <= 1)  # so that there is always a choice
        near = np.union1d(near, alone)
        menus.append((configs[near], np.minimum(cost[near], cleared.master.out)))
    if len(jobs) <= 3 and few == LEAST_EACH:
        return _tried(menus, room)
    master = Master(len(jobs), room, cleared.master.scale, cleared.master.out)
    for at, (configs, cost) in enumerate(menus):
        master.add(Columns(np.full(len(cost), at), configs, cost))
    chosen, columns = master.choice(NODES if few is None else QUICK), master.columns()
    mix: Ints = np.zeros((len(jobs), len(room)), dtype=np.int64)
    mix[columns.jobs[chosen]] = columns.configs[chosen]
    return mix


def _tried(menus: Sequence[tuple[Ints, Floats]], room: Ints) -> Ints:
    """Try all combinations of what two or three jobs could take; nothing for any job if none fits."""
    used, cost, picks = (
        np.zeros((1, len(room)), dtype=np.int64),
        np.zeros(1),
        np.zeros((1, 0), dtype=np.int64),
    )
    for configs, its in menus:
        together = used[:, None] + configs
        before, pick = np.nonzero((together <= room).all(axis=2))
        used, cost = together[before, pick], cost[before] + its[pick]
        picks = np.column_stack([picks[before], pick])
    if not cost.size:
        return np.zeros((len(menus), len(room)), dtype=np.int64)
    best = picks[int(cost.argmin())]
    return np.stack([configs[pick] for (configs, _), pick in zip(menus, best.tolist(), strict=True)])
