"""The memory axis of a profile, computed instead of measured (Synergy's optimistic profiling).

A cache that keeps a fixed set of items hits, in every epoch, the part f of the dataset D that fits into it.
One measurement with everything in memory is then enough for all sizes of memory:

    fetch(f) = f D / memory bandwidth + (1 - f) D / storage bandwidth
    epoch(f) = max( epoch with everything in memory, fetch(f) )

The storage bandwidth that is needed is what there is if fetching takes longer, else just enough for the part
that is not cached to arrive in time: (1 - f) D / (epoch - f D / memory bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainyard.model.speed.tables import Row

KB_PER_GB = 1e6
DEFAULT_SHARES = tuple(tenths / 10 for tenths in range(11))


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is read in an epoch, and how fast: a dataset, its storage and memory, and MB per GB."""

    dataset_gb: float
    storage_mbps: float
    memory_gbps: float = math.inf
    mb_per_gb: float = 1000.0

    def fetch_s(self, cached: float) -> float:
        """Seconds to read all of it once, a share of it from memory."""
        return self._from_memory_s(cached) + self._stored_mb(cached) / self.storage_mbps

    def epoch_s(self, full_memory_s: float, cached: float) -> float:
        """Seconds of an epoch that takes `full_memory_s` with everything in memory."""
        return max(full_memory_s, self.fetch_s(cached))

    def storage_mbps_needed(self, full_memory_s: float, cached: float) -> float:
        """Storage bandwidth that such an epoch uses."""
        if self.fetch_s(cached) > full_memory_s:
            return self.storage_mbps
        return self._stored_mb(cached) / (full_memory_s - self._from_memory_s(cached))

    def _from_memory_s(self, cached: float) -> float:
        return cached * self.dataset_gb / self.memory_gbps

    def _stored_mb(self, cached: float) -> float:
        return (self.dataset_gb - cached * self.dataset_gb) * self.mb_per_gb


def memory_rows(
    speeds: Mapping[float, float], memory_gb: Sequence[float], dataset: Dataset | None, sample_kb: float
) -> tuple[Row, ...]:
    """Rows (CPUs, GB, samples/s) from samples/s by CPUs with all in memory; flat without a dataset."""
    return tuple(
        (cpus, gb, float(f"{_speed(speed, gb, dataset, sample_kb):.6g}"))
        for cpus, speed in speeds.items()
        for gb in memory_gb
    )


def default_memory_gb(dataset: Dataset | None) -> list[float]:
    """Tenths of the dataset; a gigabyte, which stands for any memory, without one."""
    if dataset is None:
        return [1.0]
    return _distinct(share * dataset.dataset_gb for share in DEFAULT_SHARES)


def _distinct(numbers: Iterable[float]) -> list[float]:
    return list(dict.fromkeys(float(f"{number:.6g}") for number in numbers))


def _speed(speed: float, gb: float, dataset: Dataset | None, sample_kb: float) -> float:
    if dataset is None:
        return speed
    samples = dataset.dataset_gb * KB_PER_GB / sample_kb
    return samples / dataset.epoch_s(samples / speed, min(1.0, gb / dataset.dataset_gb))
