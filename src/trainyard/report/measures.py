"""What a run is judged by: each measure of the summary, its name, its unit and which end of it is good."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainyard.model.tolerance import PART
from trainyard.report import units

Summary = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a summary."""

    key: str
    label: str
    meaning: str
    show: Callable[[float], str]
    best: Literal["low", "high", ""] = "low"


SPEEDUP = "speedup"
FALLBACK_SHARE = "fallback_share"
RESCUES, NODE_FAILURES, RUNS_LOST = "rescues", "node_failures", "runs_lost"
RARE = (RESCUES, NODE_FAILURES, RUNS_LOST)  # shown only where there is something to tell

MEASURES: dict[str, Measure] = {
    m.key: m
    for m in (
        Measure("avg_jct_s", "avg JCT", "average completion time: finish - arrival", units.duration),
        Measure(
            SPEEDUP, "x vs first", "average JCT of the first policy / that of this one", units.times, "high"
        ),
        Measure(
            "median_jct_s",
            "median JCT",
            "half of the jobs that ended did so within this time",
            units.duration,
        ),
        Measure("p95_jct_s", "p95 JCT", "95% of the jobs that ended did so within this time", units.duration),
        Measure("p99_jct_s", "p99 JCT", "99% of the jobs that ended did so within this time", units.duration),
        Measure("avg_queue_s", "avg queue", "average wait before the first start", units.duration),
        Measure("makespan_s", "makespan", "last finish - first arrival", units.duration),
        Measure(
            "gpu_utilization", "GPU use", "allocated GPU-time / capacity over the run", units.percent, "high"
        ),
        Measure("preemptions", "preemptions", "times a running job was put back in the queue", units.count),
        Measure("restarts", "restarts", "times a job paid for stopping and starting again", units.count),
        Measure(
            "finish_time_fairness_avg",
            "fairness avg",
            "average of JCT / JCT with an equal share of the cluster",
            units.short,
        ),
        Measure(
            "finish_time_fairness_max",
            "fairness max",
            "the same of the job treated worst; 1 or less is fair",
            units.short,
        ),
        Measure(
            "jain_index",
            "Jain",
            "Jain's index of that ratio; 1 when all jobs fare alike",
            units.short,
            "high",
        ),
        Measure("decision_p50_ms", "decision p50", "median time to decide, milliseconds", units.short),
        Measure(
            "decision_p99_ms",
            "decision p99",
            "99th percentile of the time to decide, milliseconds",
            units.short,
        ),
        Measure(
            FALLBACK_SHARE,
            "left to others",
            "part of the decisions that a learned policy left to another one",
            units.percent,
            "",
        ),
        Measure(
            RESCUES,
            "rescues",
            "decisions in which a job ran that a stage would have left waiting, as nothing would have run",
            units.count,
            "",
        ),
        Measure(NODE_FAILURES, "node failures", "times a node went down", units.count, ""),
        Measure(RUNS_LOST, "runs lost", "runs that ended with a node", units.count, ""),
        Measure("wall_s", "wall time", "time the simulation took", units.duration, ""),
    )
}


def number(summary: Summary, key: str) -> float:
    """Return a number of a summary; NaN where there is none."""
    value = summary.get(key)
    return float(value) if isinstance(value, int | float) else math.nan


def worth_showing(key: str, summaries: Sequence[Summary], rare: Sequence[str] = RARE) -> bool:
    """Whether a measure tells anything: few runs have any of the rare ones."""
    return key not in rare or any(number(summary, key) > 0 for summary in summaries)


def with_speedup(summaries: Sequence[Summary]) -> list[dict[str, object]]:
    """Add to each summary how many times shorter its average JCT is than that of the first."""
    first = number(summaries[0], "avg_jct_s") if summaries else math.nan

    def ratio(own: float) -> float:
        return first / own if own > 0 else (1.0 if own == first else math.nan)

    return [{**s, SPEEDUP: ratio(number(s, "avg_jct_s"))} for s in summaries]


def winners(summaries: Sequence[Summary], measure: Measure) -> set[int]:
    """Return which runs have the best value; none when all are alike or no value is better."""
    values = [number(s, measure.key) for s in summaries]
    finite = [v for v in values if math.isfinite(v)]
    if not finite or not measure.best:
        return set()
    target = min(finite) if measure.best == "low" else max(finite)
    best = {i for i, v in enumerate(values) if math.isclose(v, target, rel_tol=PART)}
    return best if len(best) < len(values) else set()
