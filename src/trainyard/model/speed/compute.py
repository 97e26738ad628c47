"""Computation of a step: the global batch split over workers of one or several GPU types.

With proportional split every worker gets samples in proportion to its speed and all finish together:

    variable = K / sum_t( n_t / c_t )        n_t workers of type t, c_t seconds per sample on type t

With equal split every worker gets K/w samples and the slowest type that takes part decides:

    variable = K/w x max_t( c_t )

A worker may hold no more than m_t samples of a step (GPU memory / memory of a sample). With proportional
split those whose share is more get m_t, and the others share the rest. A batch that fits in no such way is
computed in several passes (gradients add up), for which the split is as if there were no limit.

A step computes fixed_s + variable. K is `batch` with strong scaling and `batch` x w with weak scaling.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster, GpuType
from trainyard.model.profile import Profile, Split, Tables
from trainyard.model.tolerance import FINE_PART, LEAST_POSITIVE


def reference_s(profile: Profile, cluster: Cluster) -> float:
    """Seconds per sample at speed 1.0; zero where a table or fixed_s says it all, one if nothing is known."""
    if profile.compute and profile.compute.per_sample_s:
        first, seconds = next(iter(profile.compute.per_sample_s.items()))
        return seconds * cluster.speed_of(first)
    layers_s = sum(layer.forward_s + layer.backward_s for layer in profile.layers)
    if layers_s > 0:
        return layers_s / profile.batch
    tables, fixed_s = profile.tables or Tables(), profile.compute.fixed_s if profile.compute else 0.0
    return 0.0 if tables.workers_servers or tables.cpu_memory or fixed_s > 0 else 1.0


def per_sample_s(profile: Profile, cluster: Cluster, types: list[str]) -> Floats:
    """Seconds per sample on each GPU type: as the profile names it, else the reference over its speed."""
    named = profile.compute.per_sample_s if profile.compute else {}
    reference = reference_s(profile, cluster)
    return np.array(
        [named[t] if t in named else reference / cluster.speed_of(t) for t in types], dtype=np.float64
    )


def samples_per_step(profile: Profile, workers: Ints) -> Floats:
    """K: samples of one step of the whole job, for each number of workers."""
    if profile.scaling == "weak":
        return profile.batch * workers.astype(np.float64)
    return np.full(len(workers), float(profile.batch))


def most_samples(profile: Profile, cluster: Cluster, types: list[str]) -> Floats | None:
    """Samples of a step that one worker of each type can hold; None if memory is no limit."""
    each = profile.compute.sample_gb if profile.compute else 0.0
    if each <= 0:
        return None
    memory = [
        cluster.gpu_types[t].memory_gb if t in cluster.gpu_types else GpuType(t).memory_gb for t in types
    ]
    return np.floor(np.array(memory) / each)


def variable_s(
    split: Split, samples: Floats, workers: Ints, seconds: Floats, most: Floats | None = None
) -> Floats:
    """Seconds of a step that depend on its samples, given the seconds per sample of each type."""
    if not seconds.any():
        return np.zeros(len(samples))
    if split == "equal":
        return _equal_s(samples, workers, seconds)
    whole = _proportional_s(samples, workers, seconds)
    return whole if most is None else _capped_s(samples, workers, seconds, most, whole)


def _proportional_s(samples: Floats, workers: Ints, seconds: Floats) -> Floats:
    rate = np.zeros(len(samples))
    for column, per_sample in enumerate(seconds):
        rate += workers[:, column] / per_sample
    return samples / rate


def _capped_s(samples: Floats, workers: Ints, seconds: Floats, most: Floats, whole: Floats) -> Floats:
    """Proportional split in which no worker gets more than it can hold: those that are full drop out."""
    full = np.zeros(workers.shape, dtype=np.bool_)
    took = whole
    for _ in range(workers.shape[1] - 1):
        full |= (workers > 0) & (took[:, None] / seconds > most * (1.0 + FINE_PART))
        left = samples - (workers * most * full).sum(axis=1)
        rate = (workers / seconds * ~full).sum(axis=1)
        took = np.where(rate > 0, left / np.maximum(rate, LEAST_POSITIVE), took)
    fits = (workers * most).sum(axis=1) >= samples
    return np.where(fits, took, whole)


def _equal_s(samples: Floats, workers: Ints, seconds: Floats) -> Floats:
    slowest: Floats = np.where(workers > 0, seconds, 0.0).max(axis=1)
    each: Floats = samples / workers.sum(axis=1)
    return each * slowest
