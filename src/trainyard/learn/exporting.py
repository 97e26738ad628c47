"""From a trained network to a weights file: its arrays, and the ranges of what it has seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainyard.learn.networks import Network, WindowNetwork, arrays_of
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import Observation
from trainyard.policy.size.dl2.weights import Weights


class Ranges:
    """The least and the largest of every number that was seen."""

    def __init__(self, features: Features) -> None:
        self.low: Singles = np.full(features.of_job, np.inf, dtype=np.float32)
        self.high: Singles = -self.low
        self.low_cluster: Singles = np.full(features.of_cluster, np.inf, dtype=np.float32)
        self.high_cluster: Singles = -self.low_cluster

    def add(self, seen: Observation) -> None:
        """Take in what was seen; rows without jobs count for nothing."""
        there = seen.mask[:, 1:].any(axis=1)
        jobs = seen.jobs[seen.jobs.any(axis=2)]
        if not (len(jobs) and there.any()):
            return
        cluster = seen.cluster[there]
        np.minimum(self.low, jobs.min(axis=0), out=self.low)
        np.maximum(self.high, jobs.max(axis=0), out=self.high)
        np.minimum(self.low_cluster, cluster.min(axis=0), out=self.low_cluster)
        np.maximum(self.high_cluster, cluster.max(axis=0), out=self.high_cluster)


def weights_of(
    policy: Network, names: tuple[str, ...], slot_s: float, ranges: Ranges, made: Mapping[str, str]
) -> Weights:
    """Return what goes into a weights file."""
    kind = "window" if isinstance(policy, WindowNetwork) else "set"
    limits = (ranges.low, ranges.high, ranges.low_cluster, ranges.high_cluster)
    return Weights(kind, names, slot_s, arrays_of(policy), *limits, made=made)
