"""What a run leaves behind: who ended how, how full the cluster was, how long decisions took."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from trainyard.model.allocation import Plan
from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.policy.choose.rescue import RESCUED
from trainyard.policy.policy import Policy
from trainyard.policy.stages import FALLBACK
from trainyard.sim.result import ENDS, UNFINISHED, Outcomes, Timeline
from trainyard.state.lifecycle import State
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

# How a job ended, as a number that fits into a column; what is not over has the last of them.
DONE = State.DONE
NUMBERS = {State(end): float(number) for number, end in enumerate(ENDS) if end != UNFINISHED}
NOT_OVER = float(ENDS.index(UNFINISHED))
PACKED = 1024  # jobs that end until somebody looks whether to pack
CELLS = 16_384  # that are packed together


class TimedPolicy:
    """Asks a policy; notes how long each answer took, and which of them a learned policy left to another."""

    def __init__(self, policy: Policy, explain: bool = False) -> None:
        self.spent_s = array("d")
        self.left_to: Counter[str] = Counter()  # decisions by the stage that took them instead
        self.rescues = array("q")  # decisions, by number, in which a job had to be rescued
        decide = partial(policy.decide, explain=True) if explain else policy.decide
        self.decide = _timed(decide, self.spent_s, self.left_to, self.rescues)


def _timed(
    decide: Callable[[Snapshot], Plan], spent_s: array[float], left_to: Counter[str], rescues: array[int]
) -> Callable[[Snapshot], Plan]:
    """Return a function, which is quicker to call than a method, that decides and takes notes."""
    spent = spent_s.append

    def timed(snapshot: Snapshot) -> Plan:
        began = perf_counter()
        plan = decide(snapshot)
        spent(perf_counter() - began)
        notes = plan[2]
        if notes:
            if FALLBACK in notes:
                left_to[notes[FALLBACK]] += 1
            if RESCUED in notes:
                rescues.append(len(spent_s))
        return plan

    return timed


class Columns:
    """Rows of numbers, packed now and then: objects would take too much memory, one by one too much time."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells: list[float] = []  # of the latest rows, one after the other
        self._packed = array("d")
        self.extend: Callable[[tuple[float, ...]], None] = self._cells.extend

    def pack(self) -> None:
        """Pack the latest rows if there are many."""
        if len(self._cells) > CELLS:
            self._packed.extend(array("d", self._cells))
            self._cells.clear()

    def rows(self) -> Floats:
        """Return all rows."""
        cells: Floats = np.array(self._packed + array("d", self._cells))
        return cells.reshape(-1, self._width)


class Recorder:
    """Keeps the outcomes and levels of one run."""

    def __init__(self) -> None:
        self.ended = 0  # jobs
        self.places: Mapping[int, int] | None = None  # by number of submission; None: one after the other
        self.levels = Columns(4)
        self._told = Columns(9)
        self._tell = self._told.extend

    def tell(self, record: Record, end: State, finish_s: float, fair_s: float) -> None:
        """Keep what Outcomes needs of a job, after its place in the order of submission."""
        start_s = record.first_start_s
        if start_s is None:
            start_s = math.nan
        gpu_s, restarts, preemptions = record.attained, record.restarts, record.preemptions
        how = 0.0 if end is DONE else NUMBERS[end]
        self._tell((record.seq, start_s, finish_s, record.ideal_s, fair_s, gpu_s, restarts, preemptions, how))
        self.ended = ended = self.ended + 1
        if not ended % PACKED:
            self._told.pack()
            self.levels.pack()

    def tell_so_far(self, record: Record, end_s: float) -> None:
        """Keep the same of a job that is not over."""
        start_s = math.nan if record.first_start_s is None else record.first_start_s
        gpu_s, counts = record.attained_gpu_s(end_s), (record.restarts, record.preemptions)
        self._tell((record.seq, start_s, math.nan, record.ideal_s, math.nan, gpu_s, *counts, NOT_OVER))

    def finishes(self) -> tuple[Floats, Ints]:
        """Return when jobs ended, and their places in the order of submission."""
        rows = self._told.rows()
        return rows[:, 2], self._places(rows)

    def _places(self, rows: Floats) -> Ints:
        """Places of jobs among all, by what was told of them."""
        seqs = rows[:, 0].astype(np.int64)
        if self.places is None:
            return seqs - 1
        return np.array([self.places[seq] for seq in seqs.tolist()], dtype=np.int64)

    def timeline(self) -> Timeline:
        """Return the levels as arrays."""
        levels = self.levels.rows()
        counts = levels[:, 1:].astype(np.int64)
        return Timeline(levels[:, 0], counts[:, 0], counts[:, 1], counts[:, 2])

    def outcomes(self, jobs: Sequence[Job]) -> Outcomes:
        """Gather what became of every job, in order of arrival."""
        told: Floats = np.full((8, len(jobs)), math.nan)  # as of jobs that have not even come
        told[4:] = 0.0
        told[7] = NOT_OVER
        rows = self._told.rows()
        told[:, self._places(rows)] = rows[:, 1:].T
        start_s, finish_s, ideal_s, fair_s, gpu_s, restarts, preemptions, ends = told
        return Outcomes(
            [job.job_id for job in jobs],
            [job.tenant for job in jobs],
            np.array([job.gpus for job in jobs], dtype=np.int64),
            np.array([job.arrival_s for job in jobs], dtype=np.float64),
            start_s,
            finish_s,
            ideal_s,
            fair_s,
            gpu_s,
            restarts.astype(np.int64),
            preemptions.astype(np.int64),
            [job.model for job in jobs],
            [ENDS[number] for number in ends.astype(np.int64).tolist()],
            [job.user for job in jobs],
            np.array([job.priority for job in jobs], dtype=np.int64),
        )
