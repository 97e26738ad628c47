"""What a person wants to know about a trace: how much, how big, how long, how bursty, and whose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from operator import attrgetter
from typing import Any

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel

HOUR_S, DAY_S = 3600.0, 86400.0
PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
CLASSES = ((1, 1), (2, 4), (5, 8), (9, 32), (33, None))
DISPERSION_S = {"10min": 600.0, "1h": HOUR_S, "24h": DAY_S}
TARGET_LOAD = 0.9
NODE_GPUS = 8
QUIET_SHARE = 0.1
LEAST_DAYS = 3
TOP = 10


@dataclass(frozen=True, slots=True)
class GpuClass:
    """Jobs with a number of GPUs in a range: their share of jobs and of GPU-time, and median run time."""

    label: str
    job_share: float
    gpu_time_share: float
    median_s: float


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How jobs come in the busy days: those from the first to the last day with a tenth of the mean."""

    from_day: int
    days: float
    jobs: int
    rate_per_h: float
    load_gpus: float
    gap_cv: float
    dispersion: dict[str, float]
    by_hour_of_day: list[float]
    peak_to_trough: float
    weekend_to_weekday: float | None


@dataclass(frozen=True, slots=True)
class TraceStats:
    """Statistics of a trace; times in seconds, rates in jobs per hour, load in GPUs."""

    jobs: int
    span_s: float
    rate_per_h: float | None
    mean_gpus: float
    max_gpus: int
    gpu_counts: dict[int, float]
    classes: list[GpuClass]
    mean_s: float
    percentiles_s: dict[int, float]
    max_s: float
    load_gpus: float | None
    arrivals: Arrivals | None
    tenants: dict[str, float]
    statuses: dict[str, float]
    suggested_gpus: int
    estimated: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def trace_stats(jobs: Sequence[Job], origin_s: float | None = None) -> TraceStats:
    """Measure a trace; `origin_s` is when its first job came, in seconds after Monday 0:00, if known."""
    if not jobs:
        raise InputError("there are no jobs to measure")
    jobs = sorted(jobs, key=attrgetter("arrival_s"))
    at = np.array([job.arrival_s for job in jobs])
    gpus = np.array([job.gpus for job in jobs], dtype=np.int64)
    times = run_times(jobs)
    span, work = float(at[-1] - at[0]), gpus * times
    arrivals = _arrivals(at, work, origin_s) if span > 0 else None
    load = float(work.sum()) / span if span > 0 else None
    return TraceStats(
        jobs=len(jobs),
        span_s=span,
        rate_per_h=len(jobs) / span * HOUR_S if span > 0 else None,
        mean_gpus=float(gpus.mean()),
        max_gpus=int(gpus.max()),
        gpu_counts=_counts(gpus),
        classes=_classes(gpus, times),
        mean_s=float(times.mean()),
        percentiles_s=dict(zip(PERCENTILES, np.percentile(times, PERCENTILES).tolist(), strict=True)),
        max_s=float(times.max()),
        load_gpus=load,
        arrivals=arrivals,
        tenants=_shares([job.tenant for job in jobs if job.tenant], len(jobs)),
        statuses=_shares([job.status for job in jobs if job.status], len(jobs)),
        suggested_gpus=_suggestion(arrivals, gpus),
        estimated=sum(job.duration_s is None for job in jobs),
    )


def run_times(jobs: Sequence[Job]) -> Floats:
    """Return run times with the requested GPUs; where only samples are given, on 8-GPU nodes of V100s."""
    if all(job.duration_s is not None for job in jobs):
        return np.array([job.duration_s for job in jobs], dtype=float)
    nodes = ceil(max(job.gpus for job in jobs) / NODE_GPUS)
    speed = SpeedModel(uniform_cluster(nodes, NODE_GPUS, "V100"))
    return np.array([speed.ideal_s(job) for job in jobs])


def class_of(gpus: Ints) -> list[tuple[str, Mask]]:
    """Return the classes of GPU counts that occur, each with which jobs are in it."""
    found = []
    for least, most in CLASSES:
        inside = (gpus >= least) & (gpus <= (most or gpus.max()))
        label = f"{least}+" if most is None else str(least) if least == most else f"{least}-{most}"
        if inside.any():
            found.append((label, inside))
    return found


def _classes(gpus: Ints, times: Floats) -> list[GpuClass]:
    total = float((gpus * times).sum())
    return [
        GpuClass(
            label,
            float(inside.mean()),
            float((gpus * times)[inside].sum()) / total,
            float(np.median(times[inside])),
        )
        for label, inside in class_of(gpus)
    ]


def _counts(gpus: Ints) -> dict[int, float]:
    values, counts = np.unique(gpus, return_counts=True)
    top = sorted(zip(counts.tolist(), values.tolist(), strict=True), reverse=True)[:TOP]
    return {value: count / len(gpus) for count, value in top}


def _shares(labels: Sequence[str], jobs: int) -> dict[str, float]:
    return {label: count / jobs for label, count in Counter(labels).most_common(TOP)}


def _arrivals(at: Floats, work: Floats, origin_s: float | None) -> Arrivals:
    begin, end = busy_window(at)
    inside = (at >= begin) & (at < end)
    times, hours = at[inside], (end - begin) / HOUR_S
    profile = hour_profile(times, origin_s or 0.0, hours)
    # Hours are smoothed with their neighbours, so that one burst is not taken for the time of the day.
    smooth = (np.roll(profile, 1) + 2 * profile + np.roll(profile, -1)) / 4
    return Arrivals(
        from_day=int(begin // DAY_S),
        days=(end - begin) / DAY_S,
        jobs=len(times),
        rate_per_h=len(times) / hours,
        load_gpus=float(work[inside].sum()) / (end - begin),
        gap_cv=_variation(np.diff(times)),
        dispersion={name: _dispersion(times - begin, w, end - begin) for name, w in DISPERSION_S.items()},
        by_hour_of_day=profile.tolist(),
        peak_to_trough=float(smooth.max() / smooth.min()) if smooth.min() > 0 else float("inf"),
        weekend_to_weekday=_weekend(times, origin_s, end - begin),
    )


def busy_window(at: Floats) -> tuple[float, float]:
    """Return the busy days of a trace of at least three days; the whole of a shorter one."""
    first, last = float(at[0]), float(at[-1])
    days, jobs = np.unique((at // DAY_S).astype(np.int64), return_counts=True)
    busy = days[jobs >= QUIET_SHARE * jobs.mean()]
    if busy[-1] - busy[0] + 1 < LEAST_DAYS:
        return first, last + 1
    # The last day is as long as its jobs, so that a trace that ends at noon has no empty afternoon.
    return max(first, float(busy[0]) * DAY_S), min(last + 1, float(busy[-1] + 1) * DAY_S)


def hour_profile(at: Floats, origin_s: float, hours: float) -> Floats:
    """Return jobs per hour for each hour of the day; without an origin it begins at time 0."""
    hour = ((at + origin_s) // HOUR_S).astype(np.int64) % 24
    return np.bincount(hour, minlength=24) / max(hours / 24, 1.0)


def _dispersion(at: Floats, window_s: float, span_s: float) -> float:
    """Return variance over mean of the arrivals in windows of a length: 1 for a Poisson process."""
    windows = int(span_s // window_s)
    if windows < LEAST_DAYS:
        return float("nan")
    # Only windows with jobs are counted out: a long gap has more windows than there is memory.
    window, jobs = np.unique((at // window_s).astype(np.int64), return_counts=True)
    jobs = jobs[window < windows]
    mean = int(jobs.sum()) / windows
    if not mean:
        return float("nan")
    around = float(np.square(jobs - mean).sum()) + (windows - jobs.size) * mean**2
    return around / windows / mean


def _variation(gaps: Floats) -> float:
    return float(gaps.std() / gaps.mean()) if len(gaps) and gaps.mean() > 0 else float("nan")


def _weekend(at: Floats, origin_s: float | None, span_s: float) -> float | None:
    """Return jobs on a weekend day over those on a weekday, if the day is known and there are two weeks."""
    if origin_s is None or span_s < 14 * DAY_S:
        return None
    days = np.bincount(((at + origin_s) // DAY_S).astype(np.int64) % 7, minlength=7)
    return float(days[5:].mean() / days[:5].mean())


def _suggestion(arrivals: Arrivals | None, gpus: Ints) -> int:
    """Return whole nodes of GPUs that would be nine tenths busy, and hold the largest job."""
    wanted = arrivals.load_gpus / TARGET_LOAD if arrivals else float(gpus.sum())
    return ceil(max(wanted, int(gpus.max())) / NODE_GPUS) * NODE_GPUS
