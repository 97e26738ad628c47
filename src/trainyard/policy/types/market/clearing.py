"""Clearing a market of goods in many units: who gets how many workers of which type, at which prices?

Every job wants a given number of workers and values each of a type alike. All start with their favourite
type; as long as a type is asked for more than there is of it, a job is moved on along the cheapest chain
of types. That is exact, and what the last chains cost are the prices. Many markets of the same jobs are
cleared at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import FINE_PART, LEAST_POSITIVE


def clear_types(value: Floats, sizes: Ints, capacity: Ints) -> tuple[Ints, Floats]:
    """Return workers by type (N, S, M) of the greatest total value, and the types' prices (N, M).

    `value` (N, S, M) is what a worker of a type is worth to a job, minus infinity if it is of no use;
    `sizes` (N, S) how many it gets. A market that cannot be cleared gives no job anything.
    """
    scale = np.where(np.isfinite(value), np.abs(value), 0.0).max(axis=(1, 2), keepdims=True) + LEAST_POSITIVE
    value = value / scale
    held = np.zeros(value.shape, dtype=np.int64)
    np.put_along_axis(held, value.argmax(axis=2)[..., None], sizes[..., None], axis=2)
    prices = np.zeros((len(value), value.shape[2]))
    market = np.arange(len(value))  # those that are not cleared yet
    while market.size:
        excess = held[market].sum(axis=1) - capacity
        cost, mover = _edges(value[market], held[market])
        far, first = _shortest(cost)
        prices[market] = _prices(far, excess < 0)
        far = np.where((excess < 0)[:, None, :], far, np.inf)  # only to types with room
        chain = far.min(axis=2)
        here, source = np.arange(market.size), excess.argmax(axis=1)
        over = excess[here, source] > 0
        stuck = over & ~np.isfinite(chain[here, source])
        held[market[stuck]] = 0
        over &= ~stuck
        target = far[here, source].argmin(axis=1)
        for k in np.flatnonzero(over).tolist():
            s, t = int(source[k]), int(target[k])
            _push(held[market[k]], mover[k], first[k], s, t, min(int(excess[k, s]), -int(excess[k, t])))
        market = market[over]
    return held, prices * scale[:, 0]


def _edges(value: Floats, held: Ints) -> tuple[Floats, Ints]:
    """What it costs to move one worker from type u to type v, and whose it is."""
    with np.errstate(invalid="ignore"):
        loss = value[:, :, :, None] - value[:, :, None, :]
    loss = np.where(held[:, :, :, None] > 0, loss, np.inf)
    mover = loss.argmin(axis=1)
    return np.take_along_axis(loss, mover[:, None], axis=1)[:, 0], mover


def _shortest(cost: Floats) -> tuple[Floats, Ints]:
    """All cheapest chains: their costs, and where each goes first."""
    types = cost.shape[1]
    far = cost.copy()
    far[:, np.arange(types), np.arange(types)] = 0.0
    first = np.broadcast_to(np.arange(types), far.shape).copy()
    for via in range(types):
        detour = far[:, :, via, None] + far[:, None, via]
        shorter = detour < far - FINE_PART
        far = np.where(shorter, detour, far)
        first = np.where(shorter, first[:, :, via, None], first)
    return far, first


def _prices(far: Floats, room: NDArray[np.bool_]) -> Floats:
    """What one more worker of each type would save: the cheapest chain to a type with room, which is free.

    A type from where no chain leads to one is dearer than any value; if there is no room at all, the
    cheapest type is free.
    """
    out = np.where(room, 0.0, 2.0 * far.shape[1])
    price: Floats = (far + out[:, None, :]).min(axis=2)
    return price - np.where(room.any(axis=1), 0.0, price.min(axis=1))[:, None]


def _push(held: Ints, mover: Ints, first: Ints, source: int, target: int, most: int) -> None:
    """Move as many workers along a chain as it can take."""
    chain, at = [], source
    while at != target:
        onward = int(first[at, target])
        chain.append((int(mover[at, onward]), at, onward))
        at = onward
    amount = min([most, *(int(held[job, u]) for job, u, _ in chain)])
    for job, u, v in chain:
        held[job, u] -= amount
        held[job, v] += amount
