"""Who held which GPUs when: the story of a run, played once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trainyard.core.story import Change
from trainyard.model.allocation import Allocation
from trainyard.model.indices import GpuIndices


class Segment(NamedTuple):
    """A stretch of time in which a job held GPUs of one node."""

    job_id: str
    node: str
    gpus: int
    start_s: float
    end_s: float
    indices: tuple[int, ...]  # of these GPUs on the node


Held = dict[str, tuple[int, ...]]  # node -> indices of its GPUs


def segments(story: Iterable[Change], gpus: Mapping[str, int], end_s: float) -> Iterator[Segment]:
    """Yield the stretches of held GPUs by their ends; a job keeps its GPUs while their number stays."""
    indices = GpuIndices(gpus)
    open_: dict[str, tuple[float, Held]] = {}
    for change in story:
        since_s, held = open_.pop(change.job_id, (change.time_s, {}))
        yield from _closed(change.job_id, held, since_s, change.time_s)
        held = _exchange(indices, held, change.allocation)
        if change.allocation is not None:
            open_[change.job_id] = change.time_s, held
    for job_id, (since_s, held) in open_.items():
        yield from _closed(job_id, held, since_s, end_s)


def _closed(job_id: str, held: Held, start_s: float, end_s: float) -> Iterator[Segment]:
    if end_s > start_s:
        for node, own in held.items():
            yield Segment(job_id, node, len(own), start_s, end_s, own)


def _exchange(indices: GpuIndices, held: Held, wanted: Allocation | None) -> Held:
    """Give back what an allocation has no more, then take what it has more; return what it has."""
    counts = {} if wanted is None else dict(wanted.workers)
    for node, own in held.items():
        if len(own) != counts.get(node):
            indices.give_back(node, own)
    kept = {node: own for node, own in held.items() if len(own) == counts.get(node)}
    return {node: kept[node] if node in kept else indices.take(node, n) for node, n in counts.items()}
