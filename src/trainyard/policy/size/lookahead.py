"""Size stage: dominant resource fairness that asks the speed model what to add, looking a few tasks ahead.

Every job starts with its fewest workers and one server. Then, again and again, the job with the smallest
weighted dominant share takes those of its next tasks, up to five workers and servers in any mixture, that
bring most speed per task. A job that no such step makes faster, or for which none fits, has enough. One task
at a time would stop too early: the second server may bring nothing and the third a lot.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.policy.bounds import MOST_AHEAD, within
from trainyard.policy.size.growth import (
    NONE,
    Amounts,
    Counts,
    Grower,
    Growth,
    all_sizes,
    grow,
    growers_of,
    smallest,
    without,
)
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.state.beliefs import Told
from trainyard.state.snapshot import Snapshot


class Lookahead(Size):
    """Gives the job with the smallest dominant share its best next tasks, up to `ahead` at once."""

    def __init__(self, ahead: int = 5, hysteresis: bool = True) -> None:
        within("ahead", ahead, 1, MOST_AHEAD)
        self.ahead = ahead
        self.hysteresis = hysteresis

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs and servers for each ranked row."""
        beliefs = Told(snapshot)
        target = look_ahead(growers_of(beliefs, ranked), self.ahead)
        shapes = Shapes(*target.T)
        return Chosen(settle(beliefs, ranked, shapes) if self.hysteresis else shapes)


def look_ahead(growers: list[Grower], ahead: int) -> Ints:
    """Return workers and servers of each job, none to wait; earlier jobs come first when room is short."""
    steps = Steps(ahead)

    def next_step(i: int, size: Counts, room: Amounts) -> Growth[Counts] | None:
        grower = growers[i]
        more = steps.best(grower, size, room)
        share = max(grower.takes(size)) / grower.weight
        return None if more == NONE else (share, grower.takes(more), (size[0] + more[0], size[1] + more[1]))

    return all_sizes(grow(*smallest(growers), next_step, again=True), NONE, len(growers))


class Steps:
    """Finds the best step of a job, and remembers it for all that are alike."""

    def __init__(self, ahead: int) -> None:
        self.reach = ahead + 1
        self.workers, self.servers = np.indices((self.reach, self.reach, 1))[:2]
        added = (self.workers + self.servers)[:, :, 0]
        self.per_task: Floats = np.where((added > 0) & (added <= ahead), 1.0 / np.maximum(added, 1), 0.0)
        self._known: dict[tuple[int, Counts], Counts] = {}

    def best(self, grower: Grower, size: Counts, room: Amounts) -> Counts:
        """Return how many workers and servers bring most speed per task, none if nothing does or fits."""
        key = (id(grower.speeds), size)
        more = self._known.get(key)
        if more is None:
            gains = self._gains(grower, size)
            more = self._known[key] = _largest(gains)
        if min(without(room, grower.takes(more))) >= 0:
            return more
        gains = self._gains(grower, size)
        takes = self.workers * grower.worker + self.servers * grower.server
        gains *= (takes <= room).all(axis=2)[: gains.shape[0], : gains.shape[1]]
        return _largest(gains)

    def _gains(self, grower: Grower, size: Counts) -> Floats:
        """Speed gained per task, by workers and servers added."""
        near = grower.speeds[size[0] : size[0] + self.reach, size[1] : size[1] + self.reach]
        gains: Floats = (near - near[0, 0]) * self.per_task[: near.shape[0], : near.shape[1]]
        return gains


def _largest(gains: Floats) -> Counts:
    """Where the largest gain is; the first of equals, nowhere if there is none."""
    at = int(gains.argmax())
    workers, servers = divmod(at, gains.shape[1])
    return (workers, servers) if gains.item(at) > 0 else NONE
