"""The input pipeline: preparing samples on CPUs and reading from storage what the cache does not hold.

    CPU      K x cpu_s_per_sample / CPUs
    storage  K x sample_kb x (1 - hit) / storage bandwidth        hit = min(1, memory / dataset)

The cache keeps a fixed set of items (as MinIO in Synergy does), so every epoch hits the part of the dataset
that fits. All CPUs and all memory that the job holds count, on whatever node.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.profile import Input


def input_cpu_s(known: Input, samples: Floats, cpus: Floats) -> Floats:
    """Seconds that the job's CPUs need for the samples of one step."""
    if known.cpu_s_per_sample == 0:
        return np.zeros(len(samples))
    return samples * known.cpu_s_per_sample / cpus


def hit_rate(known: Input, memory_gb: Floats) -> Floats:
    """Share of the dataset that the job's memory holds; a dataset of no known size is always held."""
    if known.dataset_gb == 0:
        return np.ones(len(memory_gb))
    return np.minimum(memory_gb / known.dataset_gb, 1.0)


def input_storage_s(known: Input, samples: Floats, memory_gb: Floats, storage_mbps: Floats) -> Floats:
    """Seconds to read the samples of one step that are not in memory."""
    megabytes = samples * known.sample_kb * 1e-3 * (1.0 - hit_rate(known, memory_gb))
    return np.where(megabytes > 0, megabytes / storage_mbps, 0.0)
