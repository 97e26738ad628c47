"""Pictures of a trace."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from trainyard.errors import TrainyardError
from trainyard.files.output import write_bytes_atomic
from trainyard.files.reading import StrPath
from trainyard.model.job import Job
from trainyard.trace.stats import DAY_S, HOUR_S, TraceStats, class_of, run_times, trace_stats


def plot_stats(jobs: Sequence[Job], path_png: StrPath, origin_s: float | None = None) -> None:
    """Draw run times by GPU class, GPU counts, arrivals over time and by hour of the day."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise TrainyardError("plots need matplotlib: pip install 'trainyard[plots]'") from None
    stats = trace_stats(jobs, origin_s)
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    _durations(axes[0][0], jobs)
    _sizes(axes[0][1], stats)
    _timeline(axes[1][0], jobs)
    _hours(axes[1][1], stats, origin_s)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120)
    write_bytes_atomic(path_png, data.getvalue())


def _durations(axis: Any, jobs: Sequence[Job]) -> None:
    gpus, times = np.array([job.gpus for job in jobs], dtype=np.int64), run_times(jobs)
    for label, inside in class_of(gpus):
        x = np.sort(times[inside])
        axis.step(x, np.arange(1, len(x) + 1) / len(x), where="post", label=f"{label} GPUs ({len(x):,})")
    axis.set(xscale="log", xlabel="run time (s)", ylabel="share of jobs", title="Run time by GPUs asked for")
    axis.legend(fontsize="small")
    axis.grid(alpha=0.3)


def _sizes(axis: Any, stats: TraceStats) -> None:
    labels = [c.label for c in stats.classes]
    at = np.arange(len(labels))
    axis.bar(at - 0.2, [c.job_share for c in stats.classes], 0.4, label="of jobs")
    axis.bar(at + 0.2, [c.gpu_time_share for c in stats.classes], 0.4, label="of GPU-time")
    axis.set_xticks(at, labels)
    axis.set(xlabel="GPUs", ylabel="share", title="Who asks, and who uses")
    axis.legend(fontsize="small")


def _timeline(axis: Any, jobs: Sequence[Job]) -> None:
    at = np.array([job.arrival_s for job in jobs])
    counts = np.bincount(((at - at.min()) // HOUR_S).astype(np.int64))
    axis.plot(np.arange(len(counts)) * HOUR_S / DAY_S, counts, linewidth=0.6)
    axis.set(xlabel="day", ylabel="jobs per hour", title="Arrivals", ylim=(0, None))


def _hours(axis: Any, stats: TraceStats, origin_s: float | None) -> None:
    profile = stats.arrivals.by_hour_of_day if stats.arrivals else [float(stats.jobs)] + [0.0] * 23
    axis.bar(np.arange(24), profile)
    clock = "hour of the day" if origin_s is not None else "hour since the start, modulo 24"
    axis.set(xlabel=clock, ylabel="jobs per hour", title="Day and night")
