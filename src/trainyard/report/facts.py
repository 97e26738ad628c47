"""What a reader must know before the plots: cluster, workload, options, and the outcome in a sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from trainyard.model.cluster import Cluster
from trainyard.report import units
from trainyard.report.measures import SPEEDUP, Summary, number
from trainyard.report.shared import shared
from trainyard.sim.result import Outcomes, Result


def headline(summaries: Sequence[Summary]) -> str:
    """Say in one sentence which policy has the shortest average completion time."""
    known = [s for s in summaries if math.isfinite(number(s, "avg_jct_s"))]
    if not known:
        return "No job ended under any policy."
    best = min(known, key=lambda s: number(s, "avg_jct_s"))
    took = f"{best['policy']} completes a job in {units.duration(number(best, 'avg_jct_s'))} on average"
    if len(summaries) == 1:
        return took + "."
    if best is summaries[0]:
        return took + ", the shortest of all."
    first = summaries[0]
    versus = f"{first['policy']} ({units.duration(number(first, 'avg_jct_s'))})"
    return f"{took}, {short_ratio(number(best, SPEEDUP))} faster than {versus}."


def short_ratio(ratio: float) -> str:
    """Say how many times something is faster; in percent when it is not by much."""
    return f"{units.short(ratio)} times" if ratio >= 1.5 else f"{100 * (ratio - 1):.0f}%"


def facts(result: Result, options: Mapping[str, object]) -> list[tuple[str, str]]:
    """List the cluster, the workload and the options as names and values."""
    return [
        ("cluster", _cluster_line(result.cluster)),
        ("workload", _workload_line(result.outcomes)),
        ("offered load", _load_line(result.outcomes, result.cluster.gpus)),
        *shared(result.cluster),
        *((name, str(value)) for name, value in options.items()),
    ]


def _cluster_line(cluster: Cluster) -> str:
    kinds: Counter[tuple[int, str]] = Counter((n.gpus, n.gpu_type) for n in cluster.nodes)
    nodes = ", ".join(f"{count} x {gpus} {kind}" for (gpus, kind), count in kinds.items())
    return f"{cluster.name}: {cluster.gpus:,} GPUs on {len(cluster.nodes):,} nodes ({nodes})"


def _workload_line(outcomes: Outcomes) -> str:
    jobs, tenants = len(outcomes.job_id), len(set(outcomes.tenant) - {""})
    by = f" of {tenants:,} tenants" if tenants > 1 else ""
    return f"{jobs:,} jobs{by}, arriving over {units.duration(_span_s(outcomes))}" if jobs else "no jobs"


def _span_s(outcomes: Outcomes) -> float:
    return float(np.ptp(outcomes.arrival_s)) if outcomes.arrival_s.size else 0.0


def _load_line(outcomes: Outcomes, gpus: int) -> str:
    """GPU-time asked for / GPU-time there was while jobs arrived."""
    asked_s = float(np.nansum(outcomes.gpus * outcomes.ideal_s))
    offered = _span_s(outcomes) * gpus
    load = f"{100 * asked_s / offered:,.0f}% of capacity" if offered > 0 else "all at once"
    return f"{load} ({units.hours(asked_s)} GPU-hours)"
