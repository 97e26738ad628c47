"""Size stage: Gavel (Narayanan et al., OSDI'20), fractions of time on each GPU type, realised in rounds.

A linear program gives every job j a fraction X_jt of time on each type t, with the gang it asks for:

    sum_t X_jt <= 1,   sum_j gpus_j X_jt <= GPUs of type t,   effective speed_j = sum_t X_jt speed_jt

and makes one of these best:

    max-min     the least of gpus_j / weight_j x effective speed / speed with an equal share (the paper's LAS)
    makespan    the latest end: the least of effective speed / samples left
    ftf         the worst finish-time fairness: (time so far + time left) / time alone on a share of 1/n
    throughput  the sum of effective speeds, each relative to the job's best (samples of different models do
                not add up, so this normalisation is ours)

Where several solutions are equally good, the one with the largest sum of relative speeds is taken. At every
round the pair of job and type with the largest X / (fraction of its life that the job has spent on the type)
goes first, as long as its gang fits. Two things differ from the original: GPUs that no fraction
claims go to waiting jobs, and GPUs that become idle between two rounds go out at once.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.job import Job
from trainyard.model.tolerance import FINE_SECONDS, ROUGH_PART, SAMPLES, SAMPLES_PER_S, SECONDS
from trainyard.policy.types.options import Options, options_of
from trainyard.policy.types.rounds import Rounds
from trainyard.solve.program import NO_ROWS, Rows, maximise
from trainyard.state.capacity import held_by_type, seconds_by_type
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

Objective = Literal["max-min", "makespan", "ftf", "throughput"]
NEVER_RAN = 1e9  # priority of a job that has received next to nothing yet, in multiples of its fraction
ENOUGH = 1e-4  # of the worst finish-time ratio, relative
MOST_STEPS = 30  # towards it


class Gavel(Rounds):
    """Time fractions by a linear program, then rounds."""

    order: ClassVar[str] = "las"

    def __init__(self, objective: Objective = "max-min", round_s: float = 360.0) -> None:
        super().__init__(round_s)
        self.objective = objective

    def needs(self, job: Job) -> int:
        """Return the gang that the job asks for."""
        return job.gpus

    def choose(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, stay: Mask) -> Ints:
        """Return the gangs of this round."""
        options = options_of(snapshot, ranked, capacity)
        x = self.fractions(snapshot, ranked, options, capacity)
        spent = seconds_by_type(snapshot, held_by_type(snapshot))[ranked]
        lived = snapshot.now_s - snapshot.table.column(Column.ARRIVAL)[ranked]
        mix: Ints = np.where(stay[:, None], held, 0)
        realise(priorities(x, spent, lived), options, capacity - mix.sum(axis=0), stay, mix)
        return mix

    def fractions(self, snapshot: Snapshot, ranked: Ints, options: Options, capacity: Ints) -> Floats:
        """Return X: part of the time of every ranked job (rows) with each of its options."""
        table = snapshot.table
        best = options.speed.max(axis=1, initial=0.0)
        relative = options.speed / np.where(best > 0, best, 1.0)[:, None]
        program = Shares(options, capacity)
        left = np.maximum(snapshot.remaining_samples()[ranked], SAMPLES)
        if self.objective == "throughput":
            return program.most(relative)
        if self.objective == "makespan":
            return program.most_even(options.speed / left[:, None], relative)
        if self.objective == "max-min":
            share = equal_share(options.speed, capacity, float(ranked.size))
            worth = table.column(Column.GPUS)[ranked] / table.column(Column.WEIGHT)[ranked]
            return program.most_even(options.speed * (worth / share)[:, None], relative)
        gpus, met = table.column(Column.GPUS)[ranked], snapshot.contention()[ranked]
        alone_s = table.column(Column.TOTAL)[ranked] / equal_share(options.speed, capacity, gpus * met)
        lived = snapshot.now_s - table.column(Column.ARRIVAL)[ranked]
        return program.fairest(options.speed, left, lived, alone_s, relative)


def equal_share(speed: Floats, capacity: Ints, parts: float | Floats) -> Floats:
    """Effective speed of each job if it had 1/parts of every type's time."""
    share: Floats = np.outer(1.0 / np.atleast_1d(parts), capacity)
    share = share / np.maximum(share.sum(axis=1), 1.0)[:, None]
    alone: Floats = (speed * share).sum(axis=1)
    return np.where(alone > 0, alone, 1.0)


class Shares:
    """The linear programs over time fractions."""

    def __init__(self, options: Options, capacity: Ints) -> None:
        self.shape = options.speed.shape
        self.job, self.option = np.nonzero(options.speed > 0)
        self.able = np.unique(self.job)  # jobs that can run at all
        use = options.use[self.job, self.option]
        pair, type_ = np.nonzero(use)
        place = np.searchsorted(self.able, self.job)
        self.base = Rows(
            np.concatenate([place, self.able.size + type_]),
            np.concatenate([np.arange(self.job.size), pair]),
            np.concatenate([np.ones(self.job.size), use[pair, type_]]),
            np.concatenate([np.ones(self.able.size), capacity]),
        )
        self.place = place

    def most(self, value: Floats) -> Floats:
        """Return fractions with the largest sum of values."""
        x = maximise(value[self.job, self.option], self.base, NO_ROWS, np.ones(self.job.size))
        assert x is not None  # giving nothing to any job is always possible
        return self._whole(x)

    def most_even(self, value: Floats, then: Floats) -> Floats:
        """Return fractions with the largest least value of a job, and of these the largest sum of `then`."""
        x, level = self._level(value)
        if not level > 0:
            return self._whole(x)
        enough = self._with_floor(value, level * (1 - ROUGH_PART))
        more = maximise(then[self.job, self.option], enough, NO_ROWS, np.ones(self.job.size))
        return self._whole(x if more is None else more)

    def fairest(self, speed: Floats, left: Floats, lived: Floats, alone_s: Floats, then: Floats) -> Floats:
        """Return fractions with the smallest worst ratio of (lived + left / effective speed) to alone_s.

        For a ratio r job j needs the speed left / (r alone_s - lived): find the fractions that exceed these
        needs most, take the ratio that they reach, and repeat until nothing is gained.
        """
        x = self.most_even(speed / left[:, None], then)
        if not self.able.size:
            return x
        ratio = self._ratio(x, speed, left, lived, alone_s)
        for _ in range(MOST_STEPS):
            need = left / np.maximum(ratio * alone_s - lived, FINE_SECONDS)
            x = self.most_even(speed / need[:, None], then)
            better = self._ratio(x, speed, left, lived, alone_s)
            if better >= ratio * (1 - ENOUGH):
                break
            ratio = better
        return x

    def _ratio(self, x: Floats, speed: Floats, left: Floats, lived: Floats, alone_s: Floats) -> float:
        effective = np.maximum((x * speed).sum(axis=1)[self.able], SAMPLES_PER_S)
        return float(((lived[self.able] + left[self.able] / effective) / alone_s[self.able]).max())

    def _level(self, value: Floats) -> tuple[Floats, float]:
        """Return fractions with the largest least value, and that value."""
        base, (worth, most) = self.base, self._scaled(value)
        scale = float(most.min(initial=np.inf))
        level, rows = self.job.size, base.limit.size + np.arange(self.able.size)
        at_most = Rows(
            np.concatenate([base.row, base.limit.size + self.place, rows]),
            np.concatenate([base.column, np.arange(self.job.size), np.full(self.able.size, level)]),
            np.concatenate([base.entry, -worth, scale / most]),
            np.concatenate([base.limit, np.zeros(self.able.size)]),
        )
        gain = np.zeros(level + 1)
        gain[level] = 1.0
        x = maximise(gain, at_most, NO_ROWS, np.ones(level + 1))
        assert x is not None
        return x[:level], float(x[level]) * scale if level else 0.0

    def _scaled(self, value: Floats) -> tuple[Floats, Floats]:
        """Values of all pairs by the largest of their job, and these: jobs may differ by many digits."""
        most: Floats = value[self.able].max(axis=1, initial=0.0)
        return value[self.job, self.option] / most[self.place], most

    def _with_floor(self, value: Floats, least: float) -> Rows:
        """The constraints, and that every job has at least so large a value."""
        base, (worth, most) = self.base, self._scaled(value)
        return Rows(
            np.concatenate([base.row, base.limit.size + self.place]),
            np.concatenate([base.column, np.arange(self.job.size)]),
            np.concatenate([base.entry, -worth]),
            np.concatenate([base.limit, -least / most]),
        )

    def _whole(self, x: Floats) -> Floats:
        fractions: Floats = np.zeros(self.shape)
        fractions[self.job, self.option] = np.where(x > ROUGH_PART, x, 0.0)
        return fractions


def priorities(x: Floats, spent_s: Floats, lived_s: Floats) -> Floats:
    """X over the fraction of its life that each job has spent on each type."""
    got = spent_s / np.maximum(lived_s, SECONDS)[:, None]
    least = 1.0 / NEVER_RAN
    priority: Floats = np.where(got > least, x / np.maximum(got, least), x * NEVER_RAN)
    return priority


def realise(priority: Floats, options: Options, left: Ints, done: Mask, mix: Ints) -> None:
    """Give gangs out by priority, then the fastest options of jobs that have none; fills `mix`."""
    best = options.speed.max(axis=1, keepdims=True, initial=0.0)
    relative = options.speed / np.where(best > 0, best, 1.0)
    types = priority.shape[1]
    job = np.arange(priority.size) // types
    able = (options.speed.ravel() > 0) & ~done[job]
    first = np.lexsort((job, -relative.ravel(), -priority.ravel()))
    has, room = done.tolist(), left.tolist()
    for pair in first[able[first]].tolist():
        j = pair // types
        if not has[j]:
            use = options.use[j, pair % types].tolist()
            if all(n <= there for n, there in zip(use, room, strict=True)):
                room = [there - n for n, there in zip(use, room, strict=True)]
                mix[j] = use
                has[j] = True
                if not any(room):
                    return
