"""Size stage: the doubling heuristic for ring jobs (Capes, Raheja, Kemertas, Mohomed, 2019).

Every job starts with its smallest size; then, again and again, the job whose doubling saves most time per
added GPU is doubled, as long as there is room and something to save. All-reduce likes powers of two: a plain
"one more worker" would stop before 9 workers, which are slower than 8, and never see how good 16 are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.size.growth import Amounts, Growth, grow, in_turn
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.size.trials import explorer_for
from trainyard.policy.stages import Changes, Chosen, Shapes, Size
from trainyard.state.beliefs import Beliefs, Learned, Told
from trainyard.state.snapshot import Snapshot

Seconds = Sequence[float]
TRIALS = 4  # sizes to learn from: 1, 2, 4 and 8 workers


class Doubling(Size):
    """Doubles the job that gains most per GPU. `explore` learns speeds by trying 1, 2, 4 and 8 GPUs first."""

    def __init__(
        self,
        mode: Literal["precompute", "explore"] = "precompute",
        hysteresis: bool = True,
        explore_s: float | None = None,
    ) -> None:
        self.explorer = explorer_for(mode == "explore", explore_s, "mode=explore")
        self.hysteresis = hysteresis

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs for each ranked row."""
        jobs, rows = snapshot.table.jobs, ranked.tolist()
        beliefs: Beliefs = Told(snapshot) if self.explorer is None else Learned(snapshot)
        options = [liked(jobs[row].least_gpus, beliefs.most(row)) for row in rows]
        trials = self._trials(snapshot, rows, options)
        paces, left = _paces(beliefs, rows, options, trials), beliefs.left[ranked]
        left[list(trials)] = 1.0
        for j, size in trials.items():
            first = options[j][0]
            options[j] = (first, size) if size > first else (first,)
        shapes = Shapes(double(options, paces, left.tolist(), snapshot.up_gpus))
        if self.hysteresis:
            shapes = settle(beliefs, ranked, shapes, frozenset(trials))
        return Chosen(shapes)

    def smaller(self, job: Job, gpus: int) -> Iterator[int]:
        """Sizes that an all-reduce likes."""
        return (size for size in reversed(liked(job.least_gpus, gpus)) if size < gpus)

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when the next trial ends."""
        return inf if self.explorer is None else self.explorer.wake_s(snapshot, changes)

    def _trials(self, snapshot: Snapshot, rows: list[int], options: list[tuple[int, ...]]) -> dict[int, int]:
        """Position in the ranking -> size to try, of all jobs that try one now."""
        if self.explorer is None:
            return {}
        trials = {}
        for j, (row, sizes) in enumerate(zip(rows, options, strict=True)):
            profile = snapshot.table.jobs[row].profile
            serves = profile is not None and profile.serves
            trial = self.explorer.next(snapshot, row, [(w, w if serves else 0) for w in sizes[:TRIALS]])
            if trial is not None:
                trials[j] = trial[0]
        return granted(trials, options, snapshot.up_gpus)


def granted(trials: dict[int, int], options: Sequence[tuple[int, ...]], gpus: int) -> dict[int, int]:
    """Return the trials there is room for beside the smallest sizes; the other jobs go on as usual."""
    runs, left = in_turn([sizes[:1] for sizes in options], (gpus,))
    wanted = [j for j in runs if j in trials]
    served, _ = in_turn([(trials[j] - options[j][0],) for j in wanted], left)
    return {wanted[k]: trials[wanted[k]] for k in served}


def _paces(
    beliefs: Beliefs, rows: list[int], options: list[tuple[int, ...]], trials: dict[int, int]
) -> list[Seconds]:
    """Seconds per sample at each size of each job; a job on trial would give anything for its size."""
    # By curve and least size; the curve is kept too, so that its id stays its own.
    known: dict[tuple[int, int], tuple[Floats, list[float]]] = {}
    paces: list[Seconds] = []
    for j, (row, sizes) in enumerate(zip(rows, options, strict=True)):
        if j in trials:
            paces.append((math.inf, 0.0))
            continue
        curve = beliefs.curve(row)
        found = known.get((id(curve), sizes[0]))
        if found is None:
            with np.errstate(divide="ignore"):
                found = known[id(curve), sizes[0]] = (curve, (1.0 / curve[list(sizes)]).tolist())
        paces.append(found[1])
    return paces


@lru_cache(maxsize=4096)
def liked(least: int, most: int) -> tuple[int, ...]:
    """Sizes that an all-reduce likes: the least, and the powers of two from there to the most."""
    size, sizes = 1 << least.bit_length(), [least]
    while size <= most:
        sizes.append(size)
        size *= 2
    return tuple(sizes)


def double(
    sizes: Sequence[tuple[int, ...]], paces: Sequence[Seconds], work: Sequence[float], gpus: int
) -> Ints:
    """Return GPUs of each job, 0 to wait.

    Job j has `work[j]` samples left, each of which takes `paces[j][k]` seconds at size `sizes[j][k]`. Jobs
    come in order of precedence: when there is no room for all, later ones wait.
    """

    def next_double(j: int, k: int, _: Amounts) -> Growth[int] | None:
        """From the k-th size to the next, if that saves anything: the most per GPU first."""
        own, pace, left = sizes[j], paces[j], work[j]
        if k + 1 == len(own):
            return None
        more, saved = own[k + 1] - own[k], left * pace[k] - left * pace[k + 1]
        return (-saved / more, (more,), k + 1) if saved > 0 else None

    served, room = in_turn([options[:1] for options in sizes], (gpus,))
    at = grow(dict.fromkeys(served, 0), room, next_double)
    return np.array([own[at[j]] if j in at else 0 for j, own in enumerate(sizes)], dtype=np.int64)
