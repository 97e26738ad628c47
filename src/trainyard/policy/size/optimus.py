"""Size stage: Optimus (Peng et al., EuroSys'18), one worker or one parameter server at a time.

Every job starts with its fewest workers and one server; then the one task that saves most time for its
dominant share of the cluster is added, again and again, as long as it saves any and there is room. Jobs
without parameter servers get workers only. With `mode=learn` nothing is known in advance: a new job first
tries a few sizes, its speed is fitted to what was seen, and its end is predicted from the losses it reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from operator import sub
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import PART
from trainyard.policy.size.growth import (
    NONE,
    Amounts,
    Counts,
    Grower,
    Growth,
    all_sizes,
    grow,
    growers_of,
    in_turn,
    smallest,
)
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.size.trials import explorer_for
from trainyard.policy.stages import Changes, Chosen, Shapes, Size
from trainyard.state.beliefs import Beliefs, Learned, Told
from trainyard.state.snapshot import Snapshot

# (workers, servers) to learn from: with five points all coefficients of the speed function can be told apart.
RING_TRIALS = (1, 2, 4, 8)
SERVER_TRIALS = ((1, 1), (2, 2), (2, 1), (1, 2), (4, 2))


class Optimus(Size):
    """Adds the task that saves most time per dominant share of the cluster."""

    def __init__(
        self,
        mode: Literal["told", "learn"] = "told",
        hysteresis: bool = True,
        explore_s: float | None = None,
    ) -> None:
        self.explorer = explorer_for(mode == "learn", explore_s, "mode=learn")
        self.hysteresis = hysteresis

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs and servers for each ranked row."""
        beliefs: Beliefs = Told(snapshot) if self.explorer is None else Learned(snapshot, losses=True)
        trials = self._trials(beliefs, ranked)
        target = one_by_one(growers_of(beliefs, ranked), beliefs.left[ranked].tolist(), trials)
        shapes = Shapes(*target.T)
        if self.hysteresis:
            on_trial = frozenset(j for j, trial in trials.items() if trial == tuple(target[j]))
            shapes = settle(beliefs, ranked, shapes, on_trial)
        return Chosen(shapes)

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when the next trial ends."""
        return inf if self.explorer is None else self.explorer.wake_s(snapshot, changes)

    def _trials(self, beliefs: Beliefs, ranked: Ints) -> dict[int, Counts]:
        """Position in the ranking -> size to try, of all jobs that have something left to try."""
        if self.explorer is None:
            return {}
        trials = {}
        for j, row in enumerate(ranked.tolist()):
            trial = self.explorer.next(beliefs.snapshot, row, _trial_sizes(beliefs, row))
            if trial is not None:
                trials[j] = trial if beliefs.apart(row) else (trial[0], 0)
        return trials


def one_by_one(growers: Sequence[Grower], left: Sequence[float], trials: Mapping[int, Counts]) -> Ints:
    """Return workers and servers of each job, none to wait; earlier jobs come first when room is short.

    `left` are the samples left of each job, `trials` the sizes that some jobs have to try now.
    """
    sizes, room = smallest(growers)
    wanted = [j for j in sizes if j in trials]
    more = [tuple(map(sub, trials[j], sizes[j])) for j in wanted]
    served, room = in_turn([growers[j].takes(tasks) for j, tasks in zip(wanted, more, strict=True)], room)
    tried = {wanted[k]: trials[wanted[k]] for k in served}
    others = {j: size for j, size in sizes.items() if j not in tried}
    grown = grow(others, room, _OneMore(growers, left).step, again=True)
    return all_sizes(tried | grown, NONE, len(growers))


class _OneMore:
    """One more worker or one more server, whichever saves more time for its share of the cluster."""

    def __init__(self, growers: Sequence[Grower], left: Sequence[float]) -> None:
        paces: dict[int, Floats] = {}  # seconds per sample by size, once for all jobs of the same speeds
        with np.errstate(divide="ignore"):
            for grower in growers:
                if id(grower.speeds) not in paces:
                    paces[id(grower.speeds)] = 1.0 / grower.speeds
        self.jobs = [
            (paces[id(g.speeds)].item, g.speeds.shape, g.worker, g.server, work)
            for g, work in zip(growers, left, strict=True)
        ]

    def step(self, j: int, size: Counts, room: Amounts) -> Growth[Counts] | None:
        """Return the better of both, if it fits and saves any time."""
        pace, (rows, columns), worker, server, left = self.jobs[j]
        (workers, servers), (gpus, cpus, memory), best = size, room, 0.0
        now, step = pace(workers, servers), None
        if servers + 1 < columns and server[1] <= cpus and server[2] <= memory:
            best = (now - pace(workers, servers + 1)) / max(*server, PART)
            step = -best * left, server, (workers, servers + 1)
        if workers + 1 < rows and worker[0] <= gpus and worker[1] <= cpus and worker[2] <= memory:
            gain = (now - pace(workers + 1, servers)) / max(worker)
            if gain > best:
                best, step = gain, (-gain * left, worker, (workers + 1, servers))
        return step if best > 0 else None


def _trial_sizes(beliefs: Beliefs, row: int) -> list[Counts]:
    """Sizes to learn from, as far as the job may have them."""
    job, most = beliefs.snapshot.table.jobs[row], beliefs.most(row)
    if beliefs.apart(row):
        return [(w, p) for w, p in SERVER_TRIALS if job.least_gpus <= w <= most]
    serves = job.profile is not None and job.profile.serves
    return [(w, w if serves else 0) for w in RING_TRIALS if job.least_gpus <= w <= most]
