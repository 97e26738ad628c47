"""Order: finish-time fairness (Mahajan et al., Themis, NSDI'20)."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.policy.order.by_key import KeyOrder
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


class Ftf(KeyOrder):
    """Finish-time fairness (Themis, NSDI'20): the job that is worst off goes first.

    rho = (time in the system + predicted remaining time) / run time with an equal share of the cluster.
    """

    takes_turns = True

    def key(self, snapshot: Snapshot) -> Floats:
        """Minus rho."""
        table = snapshot.table
        total_s = table.column(C.TOTAL) / table.column(C.REFERENCE_RATE)
        crowding = table.column(C.GPUS) * snapshot.contention() / max(snapshot.up_gpus, 1)
        fair_s = total_s * np.maximum(crowding, 1.0)
        shared_s = snapshot.now_s - table.column(C.ARRIVAL) + snapshot.remaining_s()
        rho: Floats = -table.column(C.WEIGHT) * shared_s / fair_s
        return rho
