"""What a reader makes of a trace: jobs on one clock, and a report of what was left out or changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.model.limits import MAX_GPUS, MAX_S

RESOLUTION_S = 1.0
WEEK_S = 7 * 86400.0
_THURSDAY_S = 3 * 86400.0  # the epoch, 1970-01-01, was a Thursday


@dataclass(slots=True)
class ConversionReport:
    """How many rows a trace has, and how many of them were left out or changed, by reason."""

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Say in words what was left out and changed."""
        left_out = [f"{n:,} of {self.read:,} rows left out: {why}" for why, n in self.dropped.items()]
        return left_out + [f"{n:,} of {self.read:,} rows changed: {why}" for why, n in self.changed.items()]


@dataclass(frozen=True, slots=True)
class Trace:
    """The jobs of a trace, the first at 0; `origin_s` is the first arrival in seconds after Monday 0:00."""

    jobs: list[Job]
    format: str
    report: ConversionReport
    origin_s: float | None = None

    @property
    def dropped(self) -> Counter[str]:
        """Rows left out, by reason."""
        return self.report.dropped


def second_of_week(epoch_s: float) -> float:
    """Return the seconds since Monday 0:00 of a time given in seconds since 1970."""
    return (epoch_s + _THURSDAY_S) % WEEK_S


class Collector:
    """Takes rows as a reader finds them; keeps the same few rules for all traces in one place."""

    def __init__(self, where: str, format: str) -> None:
        self._where = where
        self._format = format
        self._jobs: list[tuple[float, str, int, float | None, dict[str, Any]]] = []
        self._ids: dict[str, int] = {}
        self.report = ConversionReport()

    def drop(self, why: str) -> None:
        """Leave a row out."""
        self.report.read += 1
        self.report.dropped[why] += 1

    def change(self, why: str) -> None:
        """Note that a row that is kept says something else than its trace does."""
        self.report.changed[why] += 1

    def add(self, job_id: str, arrival_s: float, gpus: int, duration_s: float | None, **rest: Any) -> None:
        """Keep a row as a job, unless it has no GPUs or ends before it starts."""
        if gpus <= 0:
            return self.drop("no GPUs")
        if gpus > MAX_GPUS or (duration_s is not None and duration_s > MAX_S):
            has = f"{gpus} GPUs" if gpus > MAX_GPUS else f"{duration_s:g} s"
            what = f"job '{job_id[:40]}' has {has}; it must be at most {MAX_GPUS} GPUs and {MAX_S:g} s"
            raise InputError(what, where=self._where)
        if duration_s is not None and duration_s < 0:
            return self.drop("ends before it starts")
        if duration_s == 0:
            self.change(f"run time 0 raised to {RESOLUTION_S:g} s, the resolution of the log")
            duration_s = RESOLUTION_S
        self.report.read += 1
        self._jobs.append((arrival_s, self._unique(job_id), gpus, duration_s, rest))
        return None

    def trace(self, origin_s: float | None = None, on_epoch: bool = False) -> Trace:
        """Return the jobs in order of arrival, the first at 0; ties keep file order."""
        if not self._jobs:
            raise InputError(f"no job with a GPU in this {self._format} trace", where=self._where)
        self._jobs.sort(key=itemgetter(0))
        first, last = self._jobs[0][0], self._jobs[-1][0]
        if last - first > MAX_S:
            what = f"its jobs come over {last - first:g} s; a trace must be of at most {MAX_S:g} s"
            raise InputError(what, where=self._where)
        jobs = [Job(name, at - first, gpus, run_s, **rest) for at, name, gpus, run_s, rest in self._jobs]
        origin = second_of_week(first) if on_epoch else origin_s
        return Trace(jobs, self._format, self.report, origin)

    def _unique(self, job_id: str) -> str:
        count = self._ids[job_id] = self._ids.get(job_id, 0) + 1
        if count == 1:
            return job_id
        self.change("id used before, made unique")
        return self._unique(f"{job_id}~{count}")
