"""Whole gangs with preemption on one GPU type, without looking at everybody.

If all jobs fit at once, those that wait start. Else, if the order lets jobs stand in line, the first waiting
ones take the places of the last running ones.
"""

from __future__ import annotations

import numpy as np

from trainyard.policy.choose.lines import lines_of
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.choose.starts import start
from trainyard.policy.draft import Draft
from trainyard.policy.order.by_key import SteadyOrder
from trainyard.policy.stages import Stages
from trainyard.policy.turns import has_turn, takes_turns


def start_all(policy: Stages, draft: Draft) -> bool:
    """Draft that all waiting jobs start; False, and nothing drafted, if one finds no place."""
    table = draft.view.table
    if table.gpus > draft.view.up_gpus:
        return False
    if table.resized:
        return Reselection(policy, draft).run_all()
    for record in draft.view.waiting:
        if start(policy, draft, record) is None:
            draft.undo()
            return False
    return True


def swap(policy: Stages, draft: Draft) -> bool:
    """Draft who stops and who starts; False, and nothing drafted, without lines or if one finds no place."""
    order, view = policy.order, draft.view
    if not isinstance(order, SteadyOrder) or view.table.resized:  # who has another size gets its own back
        return False
    if not len(view.waiting):
        return True
    stops, starts = lines_of(order, view).choose(view)
    if takes_turns(order, view) and has_turn(view, np.array([record.row for record in stops])).any():
        return False
    for record in stops:
        draft.release(record.job_id)
    for record in starts:
        if start(policy, draft, record) is None:
            draft.undo()
            return False
    return True
