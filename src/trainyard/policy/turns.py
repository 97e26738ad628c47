"""Turns: whoever takes turns runs for ten times as long as the restart costs that the turn will end in.

Shorter ones are spent on restarts; with turns shorter than a restart nobody would get anything done.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Ints, Mask
from trainyard.policy.stages import Order
from trainyard.state.snapshot import Snapshot

RESTARTS = 10.0  # that a turn lasts at least


def takes_turns(order: Order, snapshot: Snapshot) -> bool:
    """Whether jobs take turns that may be too short: in rounds, else only what happens ends a turn."""
    rules = snapshot.rules
    return order.takes_turns and rules.round_s is not None and rules.restart_s != 0


def has_turn(snapshot: Snapshot, rows: Ints) -> Mask:
    """Return which of these jobs run, and have not had their turn yet."""
    has: Mask = np.zeros(rows.size, dtype=np.bool_)
    if snapshot.rules.restart_s == 0:
        return has
    for i, row in enumerate(rows.tolist()):
        record = snapshot.table.records[row]
        if record.rate > 0:
            turn_s = RESTARTS * snapshot.restart_cost(record.job)
            has[i] = snapshot.now_s - record.run_since_s < turn_s
    return has
