"""An order of one number per job: the interface for orders of other packages, which stays valid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import isnan
from numbers import Real
from typing import NamedTuple

import numpy as np

from trainyard.errors import PlanError
from trainyard.model.arrays import Floats, Ints
from trainyard.policy.choose.walk import by_key
from trainyard.policy.stages import Order
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


class JobView(NamedTuple):
    """One active job at one moment, as `ScoreOrder.score` sees it. Later versions may add fields."""

    job_id: str
    tenant: str  # "" if the job names none
    model: str  # "" if the job names none
    gpus: int  # what the job asks for
    min_gpus: int  # fewest GPUs the job can run with
    max_gpus: int  # most GPUs the job can use
    gpu_type: str  # the only type the job accepts, or ""
    weight: float
    deadline_s: float | None
    arrival_s: float
    now_s: float
    remaining_s: float  # predicted run time left with the GPUs the job asks for
    executed_s: float  # time with GPUs so far
    attained_gpu_s: float  # GPU-seconds so far
    running: bool  # whether the job has GPUs now


class ScoreOrder(Order):
    """An order of one number per job: the smallest goes first, ties in order of submission.

    Every decision asks for the scores of all active jobs anew, so a score may depend on the time. The order
    may stop running jobs; with `preemptive = False` it leaves them alone and asks only for those that wait.
    """

    @abstractmethod
    def score(self, job: JobView) -> float:
        """Return the number of one job; it must depend on nothing but the job."""

    def rank(self, snapshot: Snapshot) -> Ints:
        """Rank active jobs by score."""
        rows = np.arange(len(snapshot.table)) if self.preemptive else snapshot.waiting_rows()
        scores: Floats = np.zeros(len(snapshot.table))
        for row, view in zip(rows.tolist(), _views(snapshot, rows), strict=True):
            scores[row] = self._checked(view)
        return by_key(scores, snapshot.table.column(C.SEQ), rows)

    def _checked(self, view: JobView) -> float:
        score = self.score(view)
        if not isinstance(score, Real) or isnan(score):
            who = f"order {type(self).__name__} scores job '{view.job_id}'"
            raise PlanError(f"{who} {score!r}; a score must be a number")
        return float(score)


def _views(snapshot: Snapshot, rows: Ints) -> Iterator[JobView]:
    """Yield the jobs of some rows."""
    remaining_s, executed_s = snapshot.remaining_s().tolist(), snapshot.executed_s().tolist()
    attained_gpu_s, target = snapshot.attained_gpu_s().tolist(), snapshot.target
    for row in rows.tolist():
        job = snapshot.table.jobs[row]
        yield JobView(
            job.job_id,
            job.tenant,
            job.model,
            job.gpus,
            job.least_gpus,
            job.most_gpus,
            job.gpu_type,
            job.weight,
            job.deadline_s,
            job.arrival_s,
            snapshot.now_s,
            remaining_s[row],
            executed_s[row],
            attained_gpu_s[row],
            job.job_id in target,
        )
