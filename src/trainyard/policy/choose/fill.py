"""Choosers for one GPU type: take all that fit, the first ones first."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.policy.choose.selection import Choice, Selection
from trainyard.policy.choose.walk import greedy
from trainyard.policy.stages import Shapes
from trainyard.state.jobs import Column


def fill(selection: Selection, ranked: Ints, shapes: Shapes) -> Choice:
    """Walk down the ranking; what does not fit in the cluster waits."""
    demand = selection.demand(ranked, shapes.gpus)
    fits = greedy(demand, selection.snapshot.up_gpus) & (demand > 0)
    target = np.zeros(selection.given.size)
    target[ranked[fits]] = demand[fits]
    return Choice(ranked[fits], target, servers=selection.servers(ranked, shapes.servers))


def fill_gangs(selection: Selection) -> Choice:
    """Do the same with whole gangs under preemption, ranking no more jobs than necessary."""
    snapshot, barred = selection.snapshot, selection.barred
    demand = snapshot.table.column(Column.GPUS)
    if barred is not None:
        demand = np.where(barred, 0.0, demand)
    rows = selection.policy.order.choose(snapshot, demand)
    rows = rows if barred is None else rows[~barred[rows]]
    target = np.zeros(selection.given.size)
    target[rows] = demand[rows]
    return Choice(rows, target)
