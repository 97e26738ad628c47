"""Who held which GPUs when: the story of a run, played once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trainyard.core.story import Change
from trainyard.model.indices import GpuIndices


class Segment(NamedTuple):
    """A stretch of time in which a job held GPUs of one node."""

    job_id: str
    node: str
    gpus: int
    start_s: float
    end_s: float
    indices: tuple[int, ...]  # of these GPUs on the node


Held = Mapping[str, tuple[int, ...]]  # node -> indices of its GPUs
NOTHING: tuple[float, Held] = 0.0, {}


def segments(story: Iterable[Change], gpus: Mapping[str, int], end_s: float) -> Iterator[Segment]:
    """Yield the stretches of held GPUs of these nodes by their ends.

    A job keeps its GPUs of a node while their number stays. What it has on nodes that are not asked for is
    left out.
    """
    indices = GpuIndices(gpus)
    open_: dict[str, tuple[float, Held]] = {}
    for change in story:
        since_s, held = open_.pop(change.job_id, NOTHING)
        if held:
            yield from _closed(change.job_id, held, since_s, change.time_s)
        if change.allocation is not None:
            counts = {node: count for node, count in change.allocation.workers if node in gpus}
            open_[change.job_id] = change.time_s, _exchange(indices, held, counts)
        elif held:
            _exchange(indices, held, {})
    for job_id, (since_s, held) in open_.items():
        yield from _closed(job_id, held, since_s, end_s)


def _closed(job_id: str, held: Held, start_s: float, end_s: float) -> Iterator[Segment]:
    if end_s > start_s:
        for node, own in held.items():
            yield Segment(job_id, node, len(own), start_s, end_s, own)


def _exchange(indices: GpuIndices, held: Held, counts: Mapping[str, int]) -> Held:
    """Give back GPUs where their number changes, then take the new number; return what the job has now."""
    for node, own in held.items():
        if len(own) != counts.get(node):
            indices.give_back(node, own)
    return {
        node: held[node] if node in held and len(held[node]) == count else indices.take(node, count)
        for node, count in counts.items()
    }
