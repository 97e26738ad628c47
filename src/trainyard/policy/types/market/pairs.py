"""Two jobs trade: everything that both hold is divided between them anew, in the best of all ways."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
from trainyard.policy.types.market.costs import Costs

WAYS = 400  # to divide what two jobs hold; pairs with more are left alone


def trade_pairs(costs: Costs, mix: Ints) -> bool:
    """Let pairs trade, each job once at most, the best trades first; return whether any did."""
    first, second, ways = _every_way(mix)
    if not len(first):
        return False
    pool = mix[first] + mix[second]
    total = costs.of(first, ways) + costs.of(second, pool - ways)
    now = costs.of(np.arange(costs.jobs), mix)
    with np.errstate(invalid="ignore"):  # jobs that hold nothing yet cost infinitely much
        gain: Floats = np.nan_to_num(now[first] + now[second] - total, nan=-np.inf)
    least = PART * float(now[np.isfinite(now)].sum())
    traded, done = np.zeros(costs.jobs, dtype=np.bool_), False
    promising = np.flatnonzero(gain > least)
    for at in promising[np.argsort(-gain[promising], kind="stable")].tolist():
        i, j = int(first[at]), int(second[at])
        if not (traded[i] or traded[j]):
            mix[i], mix[j] = ways[at], pool[at] - ways[at]
            traded[[i, j]] = done = True
    return done


def _every_way(mix: Ints) -> tuple[Ints, Ints, Ints]:
    """For every pair and every way to divide what it holds: the two jobs, and what the first one gets."""
    pairs = np.array(list(combinations(range(len(mix)), 2)), dtype=np.int64).reshape(-1, 2)
    sides = mix[pairs[:, 0]] + mix[pairs[:, 1]] + 1
    count = np.prod(sides, axis=1)
    some = (count > 2) & (count <= WAYS)
    pairs, sides, count = pairs[some], sides[some], count[some]
    owner = np.repeat(np.arange(len(pairs)), count)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    ways: Ints = np.empty((len(owner), mix.shape[1]), dtype=np.int64)
    for t in range(mix.shape[1]):
        ways[:, t] = rank % sides[owner, t]
        rank //= sides[owner, t]
    return pairs[owner, 0], pairs[owner, 1], ways
