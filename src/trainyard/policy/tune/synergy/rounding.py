"""Synergy-OPT: from fractions of jobs on nodes to whole GPUs on nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Ints, Mask
from trainyard.model.tolerance import WHOLE_COUNT
from trainyard.policy.tune.synergy.seats_program import Fractions
from trainyard.state.room import Parts, fewest_nodes, levels_of, total, within


@dataclass(frozen=True, slots=True)
class Placed:
    """How many GPUs of which node each job gets."""

    job: Ints
    node: Ints
    gpus: Ints


def round_placement(fractions: Fractions, gpus: Ints, node_gpus: Ints) -> Placed:
    """Put every job on whole GPUs; no GPU is given twice. CPUs and memory are not looked at.

    Whole jobs stay where they are. The others follow, the largest first and then the least split: on the node
    with their largest fraction among those with room for all, else on the fewest nodes. A job is left out
    only if there are not enough GPUs.
    """
    whole = fractions.fraction > 1 - WHOLE_COUNT
    job, node = fractions.job[whole], fractions.node[whole]
    taken = np.bincount(node, gpus[job], node_gpus.size)
    room = _Room((node_gpus - taken).astype(np.int64))
    split = _split_jobs(fractions, ~np.isin(fractions.job, job), gpus)
    parts = [(i, *part) for i, nodes in split for part in room.take(nodes, int(gpus[i]))]
    rest = np.array(parts, dtype=np.int64).reshape(-1, 3)
    placed = np.concatenate([np.column_stack([job, node, gpus[job]]), rest]).astype(np.int64)
    return Placed(*placed.T)


def _split_jobs(fractions: Fractions, split: Mask, gpus: Ints) -> list[tuple[int, list[int]]]:
    """Split jobs, the largest first and then the least split, each with its nodes, largest fraction first."""
    job, node, fraction = fractions.job[split], fractions.node[split], fractions.fraction[split]
    order = np.lexsort((node, -fraction, job))
    jobs, first = np.unique(job[order], return_index=True)
    nodes = np.split(node[order], first[1:])
    ranked = np.lexsort((jobs, -fraction[order][first], -gpus[jobs]))
    return [(int(jobs[i]), nodes[i].tolist()) for i in ranked]


class _Room:
    """Free GPUs per node."""

    def __init__(self, free: Ints) -> None:
        self.levels = levels_of(free)
        self.free: list[int] = free.tolist()

    def take(self, preferred: list[int], gpus: int) -> Parts:
        """Take GPUs for one job: where it prefers to be if that needs no more nodes."""
        parts = next(([(node, gpus)] for node in preferred if self.free[node] >= gpus), None)
        parts = parts or self._fewest(preferred, gpus)
        for node, count in parts:
            self.levels[self.free[node]] ^= 1 << node
            self.free[node] -= count
            self.levels[self.free[node]] |= 1 << node
        return parts

    def _fewest(self, preferred: list[int], gpus: int) -> Parts:
        anywhere = fewest_nodes(self.levels, gpus) or []
        own = within(self.levels, sum([1 << node for node in preferred]))
        there = fewest_nodes(own, gpus) if total(own) >= gpus else None
        return there if there and len(there) <= len(anywhere) else anywhere
