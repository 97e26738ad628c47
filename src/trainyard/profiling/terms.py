"""The speed model as sums of unknowns: what each unknown of a profile adds to the seconds of a step.

    step = max( core, cpu, storage )

    core     sum_t per_sample_s[t] x K/w of type t + fixed_s
             + gradient_mb x what the wire takes per MB + worker_overhead_s x w + server_overhead_s x p
    cpu      cpu_s_per_sample x K / CPUs
    storage  sample_kb x K (1 - hit) / storage bandwidth

Each side is linear in its unknowns, none of which is negative. Samples with servers mean parameter servers,
others a ring. A message's latency is not told apart: its part that grows with w is in `worker_overhead_s`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Compute, Input, Profile, Scaling, Sync
from trainyard.model.speed.allreduce import allreduce_s
from trainyard.model.speed.compute import samples_per_step
from trainyard.model.speed.inputs import input_cpu_s, input_storage_s
from trainyard.model.speed.paramserver import at_least_one, one_way_s
from trainyard.profiling.samples import Sample, Setting, gpu_types, shapes_of

Side = Literal["core", "cpu", "storage"]
PER_SAMPLE = "per_sample_s "  # followed by the GPU type
LEAST_S = 1e-12  # stands for no time at all, which a profile cannot say


@dataclass(frozen=True, slots=True)
class Term:
    """One unknown: the side it is on, and the seconds that one unit of it adds to each sample's step."""

    name: str
    side: Side
    seconds: Floats


def samples_of_step(samples: Sequence[Sample], batch: int, scaling: Scaling) -> Floats:
    """K of each sample."""
    workers = np.array([s.workers for s in samples], dtype=np.int64)
    return samples_per_step(Profile(batch=batch, scaling=scaling), workers)


def terms_of(samples: Sequence[Sample], setting: Setting) -> list[Term]:
    """Return the unknowns that can matter in these samples, the one to give up first last."""
    shapes = shapes_of(samples, setting)
    workers: Ints = shapes.workers.sum(axis=1)
    step = samples_of_step(samples, setting.batch, setting.scaling)
    one_gb = Input(1.0, 1.0, setting.dataset_gb)
    own = [
        Term(PER_SAMPLE + name, "core", step / workers * (shapes.workers[:, column] > 0))
        for column, name in enumerate(gpu_types(samples))
    ]
    others = [
        Term("fixed_s", "core", np.ones(len(samples))),
        Term("worker_overhead_s", "core", workers.astype(np.float64)),
        Term("server_overhead_s", "core", _managed(shapes.servers)),
        Term("gradient_mb", "core", _wire_s(workers, shapes.servers, shapes.bandwidth_gbps)),
        Term("cpu_s_per_sample", "cpu", input_cpu_s(one_gb, step, shapes.cpus)),
        Term("sample_kb", "storage", input_storage_s(one_gb, step, shapes.memory_gb, shapes.storage_mbps)),
    ]
    return own + [term for term in others if term.seconds.any()]


def profile_of(found: Mapping[str, float], samples: Sequence[Sample], setting: Setting, name: str) -> Profile:
    """Put the unknowns, once found, into the profile whose speed they are."""
    known = {term: float(f"{value:.6g}") for term, value in found.items() if value > 0}
    seconds = {t: known.get(PER_SAMPLE + t, LEAST_S) for t in gpu_types(samples)}
    sync = Sync(
        kind="ps" if any(sample.servers for sample in samples) else "ring",
        gradient_mb=known.get("gradient_mb", 0.0),
        latency_s=0.0,
        worker_overhead_s=known.get("worker_overhead_s", 0.0),
        server_overhead_s=known.get("server_overhead_s", 0.0),
    )
    given = Input(known.get("cpu_s_per_sample", 0.0), known.get("sample_kb", 0.0), setting.dataset_gb)
    return Profile(
        name=name,
        batch=setting.batch,
        scaling=setting.scaling,
        compute=Compute(known.get("fixed_s", 0.0), seconds),
        sync=None if sync == Sync(sync.kind, latency_s=0.0) else sync,
        input=None if given == Input() else given,
    )


def _managed(servers: Ints) -> Floats:
    return at_least_one(servers).astype(np.float64) if servers.any() else np.zeros(len(servers))


def _wire_s(workers: Ints, servers: Ints, bandwidth_gbps: Floats) -> Floats:
    """Seconds that one megabyte of gradients adds."""
    if servers.any():
        return 2 * one_way_s(Sync("ps"), 1.0, workers, servers, bandwidth_gbps)
    return allreduce_s(Sync(latency_s=0.0), 1.0, workers, bandwidth_gbps)
