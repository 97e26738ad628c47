"""The data of the interactive plots, as plain values for JSON, rounded to what can be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.tolerance import SECONDS
from trainyard.report import palette, series
from trainyard.report.gantt import Bar, Gantt, build_gantt
from trainyard.report.units import DURATION_TICKS, axis_unit
from trainyard.sim.result import Outcomes, Result

CDF_POINTS = 1000
QUEUE_POINTS = 2000
UTILIZATION_BUCKETS = 160
MAX_TENANTS = len(palette.FILLS)
ID_LENGTH = 64  # longer names of jobs and tenants are cut in the middle


def payload(results: Sequence[Result]) -> dict[str, object]:
    """Return everything the page's script draws."""
    start_s = min(
        (float(r.outcomes.arrival_s.min()) for r in results if r.outcomes.arrival_s.size), default=0.0
    )
    end_s = max(r.end_s for r in results)
    unit = axis_unit(end_s - start_s)
    chart = build_gantt(results)
    return {
        "unit": {"name": unit.name, "seconds": unit.seconds},
        "ticks": [list(tick) for tick in DURATION_TICKS],
        "colours": {
            "fills": palette.FILLS,
            "other": palette.OTHER_FILL,
            "sizes": palette.SIZE_FILLS,
        },
        "classes": _classes(results),
        "policies": [_policy(result, i) for i, result in enumerate(results)],
        "gantt": _gantt(chart, results[0].outcomes),
    }


def significant(values: Floats | Sequence[float], digits: int = 5) -> list[float | None]:
    """Round to significant digits; what is not a finite number becomes None."""
    return [
        float(f"{v:.{digits}g}") if math.isfinite(v) else None
        for v in np.asarray(values, dtype=float).tolist()
    ]


def _to_pixels(times: Floats, span_s: float) -> list[float]:
    """Round moments to a hundred-thousandth of the span they are drawn in, wherever it begins."""
    rounded: list[float] = np.round(times, max(0, 5 - math.floor(math.log10(max(span_s, SECONDS))))).tolist()
    return rounded


def _policy(result: Result, index: int) -> dict[str, object]:
    o = result.outcomes
    colour, dash = palette.policy_style(index)
    smallest = DURATION_TICKS[0][0]  # a logarithmic axis has no place for zero
    return {
        "name": result.policy,
        "colour": colour,
        "dash": dash,
        "jct": _cdf(np.maximum(o.jct_s, smallest)),
        "slowdown": _cdf(series.ratio(o.jct_s, o.ideal_s)),
        "fairness": _cdf(series.ratio(o.jct_s, o.fair_s)),
        "queue": _steps(series.keep_extremes(series.queue_steps(result), QUEUE_POINTS)),
        "utilization": _steps(series.time_means(series.utilization_steps(result), UTILIZATION_BUCKETS)),
    }


def _cdf(values: Floats) -> dict[str, object]:
    points = series.cdf(values, CDF_POINTS)
    return {"x": significant(points.x), "y": significant(points.fraction)}


def _steps(steps: series.Steps) -> dict[str, object]:
    if not steps.time_s.size:
        return {"t": [], "v": []}
    # One more point, so that the last level is drawn to its end.
    times, levels = np.append(steps.time_s, steps.end_s), np.append(steps.level, steps.level[-1])
    return {"t": _to_pixels(times, float(np.ptp(times))), "v": significant(levels)}


def _classes(results: Sequence[Result]) -> dict[str, object]:
    first = results[0].outcomes
    return {
        "gpus": _boxes(results, series.classes_by_gpus(first.gpus)),
        "length": _boxes(results, series.classes_by_length(first.ideal_s)),
    }


def _boxes(results: Sequence[Result], classes: Sequence[series.SizeClass]) -> dict[str, object]:
    labels = [f"{c.label}<br>{int(c.members.sum()):,} jobs" for c in classes]
    boxes = [[series.spread(r.outcomes.jct_s[c.members]) for c in classes] for r in results]
    return {"labels": labels, "boxes": [[significant(b) if b else None for b in row] for row in boxes]}


def _gantt(chart: Gantt, outcomes: Outcomes) -> dict[str, object]:
    used = dict.fromkeys(bar.job_id for bars in chart.bars for bar in bars)
    place = {job: i for i, job in enumerate(outcomes.job_id) if job in used}
    numbers = {job: i for i, job in enumerate(used)}
    tenants = _tenants(outcomes)
    unit = axis_unit(chart.end_s - chart.start_s)
    return {
        "bands": [[_cut(band.node.node_id), band.low, band.node.gpus] for band in chart.bands],
        "top": chart.top,
        "unit": {"name": unit.name, "seconds": unit.seconds},
        "window": [chart.start_s, chart.end_s],
        "caption": chart.caption(),
        "tenants": [_cut(t) for t in tenants],
        "jobs": [_job(job, place.get(job), outcomes, tenants) for job in used],
        "bars": [_bars(bars, numbers, chart) for bars in chart.bars],
    }


def _job(job: str, place: int | None, outcomes: Outcomes, tenants: Mapping[str, int]) -> list[object]:
    """Return name, place in order of arrival, requested GPUs and number of the tenant (-1: a small one)."""
    if place is None:
        return [_cut(job), 0, 0, -1]
    return [_cut(job), place, int(outcomes.gpus[place]), tenants.get(outcomes.tenant[place], -1)]


def _tenants(outcomes: Outcomes) -> dict[str, int]:
    """Number the tenants that held the most GPU-time."""
    held: dict[str, float] = {}
    for tenant, gpu_s in zip(outcomes.tenant, np.nan_to_num(outcomes.gpu_s).tolist(), strict=True):
        if tenant:
            held[tenant] = held.get(tenant, 0.0) + gpu_s
    largest = sorted(held, key=lambda t: (-held[t], t))[:MAX_TENANTS]
    return {tenant: i for i, tenant in enumerate(largest)}


def _bars(bars: Sequence[Bar], numbers: Mapping[str, int], chart: Gantt) -> dict[str, object]:
    """Return the bars as columns."""
    span_s = chart.end_s - chart.start_s
    return {
        "job": [numbers[b.job_id] for b in bars],
        "low": [round(b.low, 1) for b in bars],
        "lanes": [b.lanes for b in bars],
        "gpus": [b.gpus for b in bars],
        "start": _to_pixels(np.array([b.start_s for b in bars]), span_s),
        "end": _to_pixels(np.array([b.end_s for b in bars]), span_s),
    }


def _cut(name: str) -> str:
    half = ID_LENGTH // 2
    return name if len(name) <= ID_LENGTH else f"{name[:half]}…{name[1 - half :]}"
