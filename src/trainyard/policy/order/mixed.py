"""An order of which fair share decides a part: `srtf(fairshare=0.5)`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Ints
from trainyard.policy.draft import Draft
from trainyard.policy.order.fairshare import FairShare
from trainyard.policy.stages import Changes, Order
from trainyard.state.snapshot import Snapshot
from trainyard.state.usage import WEEK_S


class Mixed(Order):
    """Jobs by the mean of two places in the ranking: the order's own, and that by fair share.

    `part` is the weight of the second; ties go by the order's own.
    """

    def __init__(self, order: Order, fair: FairShare, part: float) -> None:
        self.order, self.fair, self.part = order, fair, part
        fair.among_waiting = True
        self.fill, self.period_s = order.fill, order.period_s
        self.half_life_s = fair.half_life_s

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank those that the order ranks."""
        ranked = self.order.rank(snapshot)
        place = np.arange(ranked.size)
        fair = np.empty(len(snapshot.table))
        fair[self.fair.ranked(snapshot, ranked)] = place
        score = (1 - self.part) * place + self.part * fair[ranked]
        mixed: Ints = ranked[np.argsort(score, kind="stable")]
        return mixed

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when either of them may change."""
        return min(self.order.wake_s(snapshot, changes), self.fair.wake_s(snapshot, changes))

    def improve(self, snapshot: Snapshot, draft: Draft) -> None:
        """Let the order do so, if it does."""
        self.order.improve(snapshot, draft)


class MixedInLine(Mixed):
    """The same for an order that leaves running jobs alone."""

    preemptive: ClassVar[bool] = False


def mixed(order: Order, fairshare: float = 0.0, half_life_s: float = WEEK_S) -> Order:
    """Return an order of which fair share decides this part; with 0, the order itself."""
    if not 0 <= fairshare <= 1:
        raise InputError(f"fairshare is {fairshare:g}; it must be from 0 to 1")
    fair = FairShare(half_life_s)
    if not fairshare:
        if half_life_s != WEEK_S:
            raise InputError("half_life_s goes with fairshare; give that too, such as fairshare=0.5")
        return order
    return (Mixed if order.preemptive else MixedInLine)(order, fair, fairshare)
