"""Which of the ranked jobs fit at once, by GPU count, the first ones first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainyard.model.arrays import Floats, Ints, Mask

NEAR = 128  # jobs behind the first that does not fit are looked at one by one, which is quicker
Keys = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def greedy(demand: Floats, budget: float) -> Mask:
    """Walk down the ranking and take every job that still fits; skip those that do not."""
    taken: Mask = np.zeros(demand.size, dtype=np.bool_)
    picked, fits, _ = _walk(demand, budget)
    taken[:fits] = True
    taken[picked] = True
    return taken


def _walk(demand: Floats, budget: float) -> tuple[list[int], int, float]:
    """Return who is taken besides the first ones, how many first ones are, and what is left of the budget."""
    filled = demand.cumsum()
    fits = int(filled.searchsorted(budget, side="right"))
    left = budget - (float(filled[fits - 1]) if fits else 0.0)
    after = fits + 1  # behind the first job that does not fit
    picked: list[int] = []
    for i, wanted in enumerate(demand[after : after + NEAR].tolist(), after):
        if left <= 0:
            break
        if wanted <= left:
            picked.append(i)
            left -= wanted
    after += NEAR
    while left > 0 and after < demand.size:
        small = (demand[after:] <= left).nonzero()[0]
        if not small.size:
            break
        small += after
        filled = demand[small].cumsum()
        more = int(filled.searchsorted(left, side="right"))
        picked += small[:more].tolist()
        left -= float(filled[more - 1])
        if more == small.size:
            break
        after = int(small[more]) + 1
    return picked, fits, left


def by_key(key: Keys, seq: Floats, rows: Ints | None = None) -> Ints:
    """Return rows (by default all) by ascending key, ties in order of submission."""
    keys = key if rows is None else key[rows]
    order: Ints = keys.argsort()
    ranked = keys[order]
    tied = ranked[1:] == ranked[:-1]
    order = order if rows is None else rows[order]
    if np.count_nonzero(tied):
        again = np.zeros(order.size, dtype=np.bool_)
        again[1:] = tied
        again[:-1] |= tied
        some = order[again]  # only these need the second key
        order[again] = some[np.lexsort((seq[some], key[some]))]
    return order


def take_in_order(key: Keys, seq: Floats, demand: Floats, budget: float, about: int) -> Ints:
    """Return who is taken by a greedy walk along ascending keys.

    If there are many more rows than the `about` that will be taken, only the front is sorted: once the budget
    is spent, it does not matter who would be next.
    """
    near: Mask | None = None
    if key.size > 2 * about + 64:
        near = key <= np.partition(key, about)[about]
    front = by_key(key, seq, None if near is None else near.nonzero()[0])
    picked, fits, left = _walk(demand[front], budget)
    taken = [front[:fits], front[picked]]
    if near is not None and left > 0:
        others = ((demand <= left) & ~near).nonzero()[0]
        if others.size:
            behind = by_key(key, seq, others)
            picked, fits, _ = _walk(demand[behind], left)
            taken += [behind[:fits], behind[picked]]
    return np.concatenate(taken)
