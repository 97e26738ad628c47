"""The 0/1 knapsack with several resources: which jobs to admit for the largest sum of values.

    maximise  sum_i values_i x_i   such that  sum_i weights_ir x_i <= capacity_r for each r, x_i in {0, 1}

Each function returns the jobs chosen as a mask. Jobs that are worth nothing, or fit nowhere, are never among
them. `exact` is a mixed-integer program; `frieze_clarke` is the approximation scheme that SMD uses (Frieze
and Clarke, 1984); `lp_rounded` is fast and loses at most the values of as many jobs as there are resources.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import PART, WHOLE_SHARE
from trainyard.solve.program import NO_ROWS, Rows, maximise

Knapsack = Callable[[Floats, Floats, Floats], Mask]

NEGLIGIBLE = 1e-9  # of the largest value: the solver takes it or leaves it


def exact(values: Floats, weights: Floats, capacity: Floats) -> Mask:
    """Return the best choice."""
    worthy = _worthy(values, weights, capacity)
    return _mask(values.size, worthy[_program(values[worthy], weights[worthy], capacity, integer=True)])


def frieze_clarke(values: Floats, weights: Floats, capacity: Floats, k: int) -> Mask:
    """Return a choice worth at least k / (k + resources) of the best: one linear program per set of up to k.

    Each set is taken as the most valuable jobs of the choice, which leaves out all that are worth more.
    """
    worthy = _worthy(values, weights, capacity)
    values, weights, size = values[worthy], weights[worthy], values.size
    best, best_worth = np.zeros(0, dtype=np.int64), 0.0
    sets = (combinations(range(worthy.size), length) for length in range(min(k, worthy.size) + 1))
    for chosen in chain.from_iterable(sets):
        taken = np.array(chosen, dtype=np.int64)
        left = capacity * (1 + PART) - weights[taken].sum(axis=0)
        if (left < 0).any():
            continue
        rest = (values <= values[taken].min(initial=np.inf)) & (weights <= left).all(axis=1)
        rest[taken] = False
        others = np.flatnonzero(rest)
        more = others[_program(values[others], weights[others], left)]
        both = np.concatenate([taken, more])
        if values[both].sum() > best_worth:
            best, best_worth = both, float(values[both].sum())
    return _mask(size, worthy[best])


def lp_rounded(values: Floats, weights: Floats, capacity: Floats) -> Mask:
    """Return what the linear program takes whole, filled up by value per part of the capacity."""
    worthy = _worthy(values, weights, capacity)
    values, weights, size = values[worthy], weights[worthy], values.size
    taken = _mask(worthy.size, _program(values, weights, capacity))
    parts = _parts(weights, capacity).sum(axis=1)
    density = np.divide(values, parts, out=np.full_like(values, np.inf), where=parts > 0)
    order = np.argsort(-density, kind="stable")
    fill(taken, order, weights, capacity)
    return _mask(size, worthy[taken])


def fill(taken: Mask, order: Ints, weights: Floats, capacity: Floats) -> None:
    """Take more jobs in this order, as long as there is room for them."""
    left = capacity * (1 + PART) - weights[taken].sum(axis=0)
    waiting = order[~taken[order]]
    while (waiting := waiting[(weights[waiting] <= left).all(axis=1)]).size:
        first, waiting = waiting[0], waiting[1:]
        taken[first] = True
        left = left - weights[first]


def _worthy(values: Floats, weights: Floats, capacity: Floats) -> Ints:
    """Those that are worth something and fit."""
    return np.flatnonzero((values > 0) & (weights <= capacity).all(axis=1))


def _mask(size: int, chosen: Ints | Mask) -> Mask:
    mask = np.zeros(size, dtype=np.bool_)
    mask[chosen] = True
    return mask


def _parts(weights: Floats, capacity: Floats) -> Floats:
    """Weights as parts of the capacity: no resource's unit decides what counts as rounding."""
    parts: Floats = np.divide(weights, capacity, out=np.zeros_like(weights), where=capacity > 0)
    return parts


def _scarce(parts: Floats) -> list[int]:
    """The resources that may run out: of two of which one is never needed more, only the other."""
    needed = parts.sum(axis=0)
    kept: list[int] = []
    for one in np.argsort(-needed, kind="stable").tolist():
        if needed[one] > 1 and not any((parts[:, one] <= parts[:, other]).all() for other in kept):
            kept.append(one)
    return kept


def _program(values: Floats, weights: Floats, capacity: Floats, integer: bool = False) -> Ints:
    """Which jobs are taken whole; without `integer` at most as many are cut as there are resources."""
    parts = _parts(weights, capacity)
    scarce = _scarce(parts)
    if not scarce:
        return np.arange(values.size)
    parts = parts[:, scarce]
    column, row = np.indices(parts.shape)
    at_most = Rows(row.ravel(), column.ravel(), parts.ravel(), np.ones(parts.shape[1]))
    x = maximise(values, at_most, NO_ROWS, np.ones(values.size), integer)
    assert x is not None  # nothing at all is always possible
    counts = values > NEGLIGIBLE * values.max()
    return np.flatnonzero(counts & (_last_of_alike(x, values, parts) > 1 - WHOLE_SHARE))


def _last_of_alike(x: Floats, values: Floats, parts: Floats) -> Floats:
    """Give what jobs that are alike get to the last of them: another version of the solver picks others."""
    _, alike = np.unique(np.column_stack([values, parts]), axis=0, return_inverse=True)
    in_order, by_amount = np.argsort(alike, kind="stable"), np.lexsort((x, alike))
    dealt = np.empty_like(x)
    dealt[in_order] = x[by_amount]
    return dealt
