"""Profiles: what is known of a job's speed. Every part is optional.

The formulas that the numbers stand in are in `trainyard.model.speed`, one file per physical effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scaling = Literal["strong", "weak"]
Split = Literal["proportional", "equal"]
SyncKind = Literal["ring", "ps", "none"]
SyncMode = Literal["sync", "async"]
Overlap = Literal["sequential", "wait-free", "priority", "priority-exact"]
Algorithm = Literal["ring", "halving-doubling", "binary-blocks", "auto"]
CostPreset = Literal["thakur", "capes"]


@dataclass(frozen=True, slots=True)
class Compute:
    """Seconds of a step on one worker: fixed_s + samples of this worker x per_sample_s of its GPU type."""

    fixed_s: float = 0.0
    per_sample_s: Mapping[str, float] = field(default_factory=dict)
    split: Split = "proportional"


@dataclass(frozen=True, slots=True)
class Sync:
    """How gradients travel: an all-reduce ("ring") or parameter servers ("ps"), and what they weigh."""

    kind: SyncKind = "ring"
    mode: SyncMode = "sync"
    gradient_mb: float = 0.0
    latency_s: float = 5e-5
    algorithm: Algorithm = "ring"
    cost_preset: CostPreset = "thakur"
    reduce_s_per_gb: float = 0.0
    overlap: Overlap = "sequential"
    worker_overhead_s: float = 0.0
    server_overhead_s: float = 0.0
    async_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the network: seconds forward and backward per step, and megabytes of gradients."""

    forward_s: float
    backward_s: float
    mb: float


@dataclass(frozen=True, slots=True)
class Input:
    """The input pipeline: CPU seconds and kilobytes per sample, and the dataset's size."""

    cpu_s_per_sample: float = 0.0
    sample_kb: float = 0.0
    dataset_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Tables:
    """Measured speeds: (workers, servers, samples/s of the job), (CPUs, GB, samples/s of one worker)."""

    workers_servers: tuple[tuple[float, float, float], ...] = ()
    cpu_memory: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """CPUs and memory that one worker or one parameter server holds."""

    cpus: float
    memory_gb: float


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a job's speed."""

    name: str = ""
    batch: int = 1
    scaling: Scaling = "strong"
    compute: Compute | None = None
    sync: Sync | None = None
    layers: tuple[Layer, ...] = ()
    input: Input | None = None
    tables: Tables | None = None
    worker: Demand | None = None
    server: Demand | None = None
    restart_s: float = 10.0
