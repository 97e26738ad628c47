"""Who ran where: the nodes, the stretch of time and the bars of a Gantt chart that a person can still read.

All policies are shown on the same nodes in the same window, so that switching between them compares like with
like. Each node is a band of one lane per GPU, by index from the bottom; a job covers the lanes of its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.cluster import Cluster, Node
from trainyard.model.tolerance import ROUGH_PART
from trainyard.report.series import Steps, busiest_window, demand_steps
from trainyard.report.units import duration
from trainyard.sim.result import Result
from trainyard.sim.segments import Segment, segments

MAX_NODES = 24
MAX_BARS = 4000
MAX_BARS_IN_ALL = 24_000  # keeps the report of many policies below its size limit
NODE_GAP = 0.7  # lanes left empty between nodes


class Bar(NamedTuple):
    """A stretch of a job on neighbouring lanes of one node; `gpus` is all it holds of the node."""

    job_id: str
    low: float
    lanes: int
    gpus: int
    start_s: float
    end_s: float


class Band(NamedTuple):
    """The lanes of one node, counted from the bottom of the chart."""

    node: Node
    low: float

    @property
    def centre(self) -> float:
        """The middle of the band."""
        return self.low + self.node.gpus / 2


@dataclass(frozen=True, slots=True)
class Gantt:
    """The chart of all policies."""

    bands: tuple[Band, ...]
    start_s: float
    end_s: float
    nodes_in_all: int
    whole: bool
    bars: tuple[tuple[Bar, ...], ...]  # one tuple per result

    @property
    def top(self) -> float:
        """The height of the chart in lanes."""
        return self.bands[0].low + self.bands[0].node.gpus if self.bands else 0.0

    def caption(self) -> str:
        """Say what part of the run the chart shows."""
        nodes = f"{len(self.bands)} of {self.nodes_in_all} nodes, evenly chosen"
        where = nodes if len(self.bands) < self.nodes_in_all else "all nodes"
        when = (
            "the whole run"
            if self.whole
            else f"the {duration(self.end_s - self.start_s)} in which most jobs were in the system"
        )
        return f"Shown: {where}; {when}."


def build_gantt(results: Sequence[Result], max_nodes: int = MAX_NODES, max_bars: int | None = None) -> Gantt:
    """Choose nodes and window and lay the bars of every result on the lanes of its GPUs."""
    limit = max_bars or min(MAX_BARS, MAX_BARS_IN_ALL // len(results))
    cluster = results[0].cluster
    bands = lay_bands(choose_nodes(cluster, max_nodes))
    gpus = {band.node.node_id: band.node.gpus for band in bands}
    held = [split(merge_touching(segments(r.story, gpus, r.end_s))) for r in results]
    # The axis must reach the end of the slowest policy, though the first one's demand decides what is busy.
    demand = demand_steps(results[0])
    demand = demand._replace(end_s=max([demand.end_s] + [r.end_s for r in results]))
    start_s, end_s, whole = choose_window(held, demand, limit)
    bars = tuple(tuple(lay_bars(_within(segments, start_s, end_s), bands)) for segments in held)
    return Gantt(bands, start_s, end_s, len(cluster.nodes), whole, bars)


def choose_nodes(cluster: Cluster, limit: int = MAX_NODES) -> list[Node]:
    """Return at most `limit` nodes, evenly spread over the cluster file, so that every kind shows."""
    nodes = [node for node in cluster.nodes if node.gpus > 0]
    if len(nodes) <= limit:
        return nodes
    return [nodes[i] for i in np.linspace(0, len(nodes) - 1, limit).round().astype(int)]


def lay_bands(nodes: Sequence[Node]) -> tuple[Band, ...]:
    """Stack the nodes, the first on top."""
    bands, low = [], 0.0
    for node in reversed(nodes):
        bands.append(Band(node, low))
        low += node.gpus + NODE_GAP
    return tuple(reversed(bands))


def merge_touching(segments: Iterable[Segment]) -> list[Segment]:
    """Join stretches in which a job kept its GPUs of a node: other resources changed, the picture did not."""
    merged: list[Segment] = []
    latest: dict[tuple[str, str], int] = {}
    for segment in segments:
        key = (segment.job_id, segment.node)
        before = latest.get(key)
        if before is not None:
            previous = merged[before]
            if previous.end_s == segment.start_s and previous.indices == segment.indices:
                merged[before] = previous._replace(end_s=segment.end_s)
                continue
        latest[key] = len(merged)
        merged.append(segment)
    return merged


def split(segments: Iterable[Segment]) -> list[Segment]:
    """Make one segment of each run of neighbouring GPUs; those without GPUs go."""
    return [s._replace(indices=run) for s in segments for run in _runs(s.indices)]


def _runs(indices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    cuts = (i for i in range(1, len(indices)) if indices[i] > indices[i - 1] + 1)
    return (indices[low:high] for low, high in pairwise((0, *cuts, len(indices))) if high)


def choose_window(held: Sequence[Sequence[Segment]], demand: Steps, limit: int) -> tuple[float, float, bool]:
    """Return a busy stretch in which no policy has more than `limit` segments, and whether it is all."""
    ends = [
        (np.sort(np.array([s.start_s for s in segments])), np.sort(np.array([s.end_s for s in segments])))
        for segments in held
    ]
    low, high = (float(demand.time_s[0]), demand.end_s) if demand.time_s.size else (0.0, demand.end_s)
    length = high - low
    start_s, end_s = low, high
    while length > 0 and max(_alive(s, e, start_s, end_s) for s, e in ends) > limit:
        length *= 0.8
        start_s, end_s = busiest_window(demand, length)
        if length < ROUGH_PART * (high - low):
            break
    return start_s, end_s, (start_s, end_s) == (low, high)


def _alive(starts: Floats, ends: Floats, start_s: float, end_s: float) -> int:
    """Count segments that began before the window's end and ended after its start."""
    return int(np.searchsorted(starts, end_s, "left") - np.searchsorted(ends, start_s, "right"))


def _within(segments: Iterable[Segment], start_s: float, end_s: float) -> list[Segment]:
    return [s for s in segments if s.start_s < end_s and s.end_s > start_s]


def lay_bars(segments: Iterable[Segment], bands: Sequence[Band]) -> list[Bar]:
    """Put every segment, whose GPUs are neighbours, on the lanes of these."""
    low = {band.node.node_id: band.low for band in bands}
    return [
        Bar(s.job_id, low[s.node] + s.indices[0], len(s.indices), s.gpus, s.start_s, s.end_s)
        for s in sorted(segments, key=lambda s: (s.start_s, s.node, s.job_id, s.indices))
    ]
