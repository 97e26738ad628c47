"""Size stage: tasks go where they save most waiting until the next round, looking a few tasks ahead.

What a job with work for L rounds at its peak speed loses in a round, when it runs at r of that speed, is

    min(1, L / r) - min(L, r)        rounds: the time that it is still there, less the work that it gets done

and without rounds 1 - r at any moment. Every job starts with its fewest workers and one server. Then, again
and again, the step of up to eight workers and servers that saves most of this per share of the cluster is
taken, of whichever job. The sum of all losses is the total of completion times over the ideal.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
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
)
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.state.beliefs import Told
from trainyard.state.snapshot import Snapshot


class Steepest(Size):
    """Gives the tasks, up to `ahead` at once, that save most waiting per share of the cluster."""

    def __init__(self, ahead: int = 8, hysteresis: bool = True) -> None:
        within("ahead", ahead, 1, MOST_AHEAD)
        self.ahead = ahead
        self.hysteresis = hysteresis

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs and servers for each ranked row."""
        beliefs = Told(snapshot)
        growers = growers_of(beliefs, ranked)
        left = beliefs.left[ranked].tolist()
        losses = [
            losses_of(grower.speeds, work, snapshot.rules.round_s) * grower.weight
            for grower, work in zip(growers, left, strict=True)
        ]
        target = steepest(growers, losses, self.ahead)
        shapes = Shapes(*target.T)
        return Chosen(settle(beliefs, ranked, shapes) if self.hysteresis else shapes)


def losses_of(speeds: Floats, work: float, round_s: float | None) -> Floats:
    """Return what a job loses until the next round, by its size."""
    peak = max(float(speeds.max()), PART)
    part = speeds / peak
    return lost(part, np.array(work / (peak * round_s))) if round_s else 1.0 - part


def lost(part: Floats, left: Floats) -> Floats:
    """Return what a job loses in a round at a part of its peak speed, with this much work left, in rounds."""
    part = np.maximum(part, PART)
    loss: Floats = np.minimum(1.0, left / part) - np.minimum(left, part)
    return loss


def steepest(growers: list[Grower], losses: list[Floats], ahead: int) -> Ints:
    """Return workers and servers of each job, none to wait; earlier jobs come first when room is short."""
    steps = _Steps(ahead)

    def next_step(i: int, size: Counts, room: Amounts) -> Growth[Counts] | None:
        gain, more = steps.best(growers[i], losses[i], size, room)
        return (-gain, growers[i].takes(more), (size[0] + more[0], size[1] + more[1])) if gain > 0 else None

    return all_sizes(grow(*smallest(growers), next_step, again=True), NONE, len(growers))


class _Steps:
    """All steps of up to `ahead` tasks."""

    def __init__(self, ahead: int) -> None:
        self.reach = ahead + 1
        self.workers, self.servers = np.indices((self.reach, self.reach))
        tasks = self.workers + self.servers
        self.allowed = (tasks > 0) & (tasks <= ahead)

    def best(self, grower: Grower, loss: Floats, size: Counts, room: Amounts) -> tuple[float, Counts]:
        """Return what the best step that fits saves per share of the cluster, and the step."""
        near = loss[size[0] : size[0] + self.reach, size[1] : size[1] + self.reach]
        workers, servers = (a[: near.shape[0], : near.shape[1]] for a in (self.workers, self.servers))
        takes = [workers * w + servers * p for w, p in zip(grower.worker, grower.server, strict=True)]
        fits = self.allowed[: near.shape[0], : near.shape[1]].copy()
        for part, free in zip(takes, room, strict=True):
            fits &= part <= free
        share = np.maximum(np.maximum(takes[0], takes[1]), takes[2])
        gains = np.where(fits, near[0, 0] - near, 0.0) / np.where(fits, share, 1.0)
        at = int(gains.argmax())
        step_w, step_p = divmod(at, near.shape[1])
        return float(gains.flat[at]), (step_w, step_p)
