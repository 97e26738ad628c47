"""What a run gives back: outcomes per job, the timeline, the story, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from trainyard.core.story import Change, Story
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster
from trainyard.model.fairness import jain
from trainyard.sim.segments import Segment, segments
from trainyard.sim.tenants import by_tenant

UNFINISHED = "unfinished"
ENDS = ("done", "failed", "cancelled", UNFINISHED)  # how it may stand with a job when the run is over


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One entry per job, in order of arrival; times that never came are NaN."""

    job_id: list[str]
    tenant: list[str]
    gpus: Ints
    arrival_s: Floats
    start_s: Floats
    finish_s: Floats
    ideal_s: Floats  # run time alone, with what it asked for
    fair_s: Floats  # run time with an equal share of the cluster among the jobs it met
    gpu_s: Floats
    restarts: Ints
    preemptions: Ints
    model: list[str]
    outcome: list[str]  # one of ENDS
    user: list[str]
    priority: Ints

    @property
    def jct_s(self) -> Floats:
        """Completion time: finish - arrival."""
        return self.finish_s - self.arrival_s

    @property
    def queue_s(self) -> Floats:
        """Time before the first start."""
        return self.start_s - self.arrival_s

    @property
    def counts(self) -> dict[str, int]:
        """How many jobs ended how."""
        return {end: self.outcome.count(end) for end in ENDS}


@dataclass(frozen=True, slots=True)
class Timeline:
    """Levels after each moment at which something changed; each holds until the next."""

    time_s: Floats
    waiting: Ints
    running: Ints
    gpus: Ints


@dataclass(frozen=True, slots=True)
class Result:
    """One simulated run."""

    policy: str
    cluster: Cluster
    outcomes: Outcomes
    timeline: Timeline
    story: Story
    decision_ms: Floats
    wall_s: float
    end_s: float
    left_to: Mapping[str, int] = field(default_factory=dict)  # decisions a learned policy left to others
    rescues: int = 0  # decisions in which a job ran against the wish of a stage, as nothing else would have
    node_failures: int = 0  # nodes that went down
    runs_lost: int = 0  # runs that ended with them

    def story_of(self, job_id: str) -> list[Change]:
        """Return everything that happened to one job, in order."""
        return self.story.of(job_id)

    def segments(self) -> Iterator[Segment]:
        """Yield who held which GPUs when, by end of the stretch."""
        gpus = {node.node_id: node.gpus for node in self.cluster.nodes}
        return segments(self.story, gpus, self.end_s)

    def summary(self) -> dict[str, object]:
        """Return the summary's keys, in the order of `simulate --json`."""
        return summarise(self)


def _percentiles(values: Floats, *points: float) -> list[float]:
    """Linear between the two nearest values, as numpy.percentile, whose first call costs most of a second."""
    if not values.size:
        return [float("nan")] * len(points)
    at = [(values.size - 1) * point / 100 for point in points]
    return [float(v) for v in np.interp(at, np.arange(values.size), np.sort(values))]


def summarise(result: Result) -> dict[str, object]:
    """Compute the summary of one run: completion times are those of all jobs that ended, however they did."""
    o = result.outcomes
    done = np.isfinite(o.finish_s)
    jct = o.jct_s[done]
    median, p95, p99 = _percentiles(jct, 50, 95, 99)
    decision_p50, decision_p99 = _percentiles(result.decision_ms, 50, 99)
    makespan = float(o.finish_s[done].max() - o.arrival_s.min()) if done.any() else float("nan")
    started = np.isfinite(o.start_s)
    fairness = jct / o.fair_s[done]
    capacity = result.cluster.gpus * (makespan if done.all() else result.end_s - float(o.arrival_s.min()))
    return {
        "policy": result.policy,
        "jobs": len(o.job_id),
        "completed": int(done.sum()),
        "avg_jct_s": float(jct.mean()) if jct.size else float("nan"),
        "median_jct_s": median,
        "p95_jct_s": p95,
        "p99_jct_s": p99,
        "avg_queue_s": float(o.queue_s[started].mean()) if started.any() else float("nan"),
        "makespan_s": makespan,
        "gpu_utilization": float(o.gpu_s.sum() / capacity) if capacity > 0 else 0.0,
        "restarts": int(o.restarts.sum()),
        "preemptions": int(o.preemptions.sum()),
        "decisions": int(result.decision_ms.size),
        "decision_p50_ms": decision_p50,
        "decision_p99_ms": decision_p99,
        "wall_s": result.wall_s,
        "finish_time_fairness_avg": float(fairness.mean()) if jct.size else float("nan"),
        "finish_time_fairness_max": float(fairness.max()) if jct.size else float("nan"),
        "jain_index": float(jain(fairness)) if jct.size else float("nan"),
        "fallback_share": sum(result.left_to.values()) / max(result.decision_ms.size, 1),
        "rescues": result.rescues,
        "node_failures": result.node_failures,
        "runs_lost": result.runs_lost,
        "outcomes": o.counts,
        "tenants": by_tenant(o.tenant, o.jct_s, o.queue_s, o.gpu_s),
    }
