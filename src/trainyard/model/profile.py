"""Profiles: what is known of a job's speed. Every part is optional.

Each number is explained by the formula it stands in; the formulas are in `trainyard.model.speed`, one file
per physical effect, and in docs/speed-model.md. Symbols: w workers, p parameter servers, K samples per step
of the whole job (`batch` with strong scaling, `batch` x w with weak), B bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainyard.model.kind import Content, content_of

Scaling = Literal["strong", "weak"]
Split = Literal["proportional", "equal"]
SyncKind = Literal["ring", "ps", "none"]
SyncMode = Literal["sync", "async"]
Overlap = Literal["sequential", "wait-free", "priority", "priority-exact"]
Algorithm = Literal["ring", "halving-doubling", "binary-blocks", "auto"]
CostPreset = Literal["thakur", "capes"]


@dataclass(frozen=True, slots=True)
class Compute:
    """Seconds of a step on one worker: fixed_s + samples of this worker x per_sample_s of its GPU type.

    fixed_s       the part that does not depend on the worker's samples
    per_sample_s  by GPU type; a type not named takes first named time x that type's speed / its own speed
    split         "proportional": all workers finish together, fixed_s + K / sum(1 / per_sample_s);
                  "equal": K/w samples each, the slowest decides
    sample_gb     GPU memory of one sample: a worker takes at most memory_gb of its GPU / sample_gb samples of
                  a step, the others share the rest; a batch that no split fits is computed in several passes,
                  which asks for no other split; 0: no limit
    """

    fixed_s: float = 0.0
    per_sample_s: Mapping[str, float] = field(default_factory=dict)
    split: Split = "proportional"
    sample_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Sync:
    """How gradients travel: an all-reduce ("ring") or parameter servers ("ps"), and what they weigh.

    gradient_mb        g: what every worker exchanges in a step; 0 with layers: the sum of the layers' mb
    latency_s          a of the all-reduce: seconds per message
    algorithm          of the all-reduce; "auto" chooses by w and g
    cost_preset        whose coefficients the all-reduce takes
    reduce_s_per_gb    gamma of the all-reduce: seconds to add up 10^9 bytes
    overlap            how communication hides behind computation
    worker_overhead_s  beta1: every step lasts beta1 x w longer
    server_overhead_s  beta2: every step lasts beta2 x p longer
    async_share        alpha: share of the workers that send to a server at the same time ("ps" with "async")
    eta                (eta1, eta2, eta3): with "sequential" overlap a step lasts
                       eta1 x samples x per_sample_s + eta2 x fixed_s + eta3 x communication: the speed
                       function of SMD, whose fixed_s is the backward and per_sample_s the forward pass
    """

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
    eta: tuple[float, float, float] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the network: seconds forward and backward per step, and megabytes of gradients.

    The seconds are those of one worker that computes the profile's whole `batch` on a GPU of speed 1.0. When
    `compute` is given too it decides how long a step takes, and the layers only say in what proportion its
    time and the gradients are spread over them. Layers are in forward order: the first is next to the input.
    """

    forward_s: float
    backward_s: float
    mb: float


@dataclass(frozen=True, slots=True)
class Input:
    """The input pipeline: CPU seconds and kilobytes per sample, and the dataset's size.

    cpu_s_per_sample  a step lasts at least K x cpu_s_per_sample / CPUs
    sample_kb         a step lasts at least K x sample_kb x (1 - hit rate) / storage bandwidth
    dataset_gb        hit rate = min(1, memory / dataset_gb): a cache that keeps a fixed set of items
    """

    cpu_s_per_sample: float = 0.0
    sample_kb: float = 0.0
    dataset_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Tables:
    """Measured speeds: (workers, servers, samples/s of the job), (CPUs, GB, samples/s of one worker).

    workers_servers  stands in for computation and communication, on GPUs of speed 1.0
    cpu_memory       stands in for the input pipeline: the job's speed is at most w x table(CPUs / w, GB / w)
    """

    workers_servers: tuple[tuple[float, float, float], ...] = ()
    cpu_memory: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """CPUs and memory that one worker or one parameter server holds."""

    cpus: float
    memory_gb: float


@dataclass(frozen=True, slots=True)
class Loss:
    """How a job's loss falls: 1 / (b0 k + b1) + b2 after k epochs of epoch_samples samples each.

    Nothing in the speed depends on it. A simulated job reports these losses, so that a policy which is told
    nothing in advance can predict from them when the job will have converged.
    """

    b0: float
    b1: float
    b2: float
    epoch_samples: float


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a fitted profile tells the speeds that it was fitted to.

    samples       measured speeds
    outliers      how many of them are so far off that the fit leaves them out; the rest counts below
    r2            share of the variation of speed that the profile tells; little when speed hardly varies
    median_error  of |told - measured| / measured
    worst_error   largest of the same
    """

    samples: int
    outliers: int
    r2: float
    median_error: float
    worst_error: float


class _Content:
    """Keeps the content of a profile once it is worked out; it is no field and is not written to files."""

    __slots__ = ("_content",)
    _content: Content


@dataclass(frozen=True, slots=True)
class Profile(_Content):
    """What is known of a job's speed.

    batch    samples of a step: of the whole job (scaling "strong") or of each worker ("weak")
    worker   CPUs and memory that each worker needs at least
    server   CPUs and memory that each parameter server holds. With both given, a job with parameter servers
             holds exactly that, and its servers may sit on other nodes than its workers; else they sit beside
             the workers and live on the share of these.
    """

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
    loss: Loss | None = None
    fit: Fit | None = None

    @property
    def content(self) -> Content:
        """What the profile says, as one object for all profiles that say the same."""
        try:
            return self._content
        except AttributeError:
            object.__setattr__(self, "_content", content_of(self))
            return self._content

    @property
    def serves(self) -> bool:
        """Whether gradients go through parameter servers."""
        return self.sync is not None and self.sync.kind == "ps"

    @property
    def apart(self) -> bool:
        """Whether parameter servers hold resources of their own."""
        return self.serves and self.worker is not None and self.server is not None
