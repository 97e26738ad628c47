"""Chooser where the size stage settled the GPUs of each type: all of it, beside running jobs that stay."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.policy.choose.selection import Choice, Selection
from trainyard.policy.stages import Shapes
from trainyard.state.capacity import held_by_type, up_by_type


def as_settled(selection: Selection, ranked: Ints, shapes: Shapes) -> Choice:
    """Take the GPUs by type as chosen; beside running jobs that stay, as far as there is room."""
    assert shapes.by_type is not None
    snapshot, by_type = selection.snapshot, shapes.by_type
    held = held_by_type(snapshot)
    if not selection.policy.order.preemptive or selection.turns:
        by_type = _beside_running(selection, ranked, by_type, held)
    whole = np.zeros_like(held)
    whole[ranked] = by_type
    target = whole.sum(axis=1).astype(np.float64)
    # The largest first: they are the hardest to put on one node.
    largest = by_type.max(axis=1, initial=0)
    if snapshot.table.bound:  # else a lower class might take the only place of a higher one
        largest = np.minimum(largest, 1)
    largest_first = np.argsort(-largest, kind="stable")
    rows = ranked[largest_first[: np.count_nonzero(by_type.any(axis=1))]]
    return Choice(rows, target, by_type=whole, moves=(whole != held).any(axis=1))


def _beside_running(selection: Selection, ranked: Ints, by_type: Ints, held: Ints) -> Ints:
    """Leave running jobs that may not be stopped what they hold; of the others those run that still fit."""
    stays = selection.stay[ranked]
    if not selection.policy.order.preemptive:
        stays = (held[ranked].sum(axis=1) > 0) & ((by_type.sum(axis=1) == 0) | stays)
    by_type = np.where(stays[:, None], held[ranked], by_type)
    left = up_by_type(selection.snapshot)
    for j in np.argsort(~stays, kind="stable").tolist():
        by_type[j] *= bool((by_type[j] <= left).all())
        left -= by_type[j]
    return by_type
