"""Samples: what a job held, and how fast it was. Any mixture of them can be fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainyard.errors import InputError, did_you_mean
from trainyard.files.checking import check
from trainyard.files.csv_table import CsvTable
from trainyard.files.position import Position
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.model.arrays import Floats
from trainyard.model.cluster import DEFAULT_GPU_TYPE, INTRA_GBPS, NETWORK_GBPS, STORAGE_MBPS, Cluster, Node
from trainyard.model.profile import Profile, Scaling
from trainyard.model.speed import Shapes, SpeedModel

REQUIRED = ("workers", "samples_per_s")
COLUMNS = ("workers", "servers", "cpus", "memory_gb", "gpu_type", "nodes", "samples_per_s")
LEAST_SPEED, MOST_SPEED = 1e-6, 1e12  # beyond these it is no speed of training, and sums lose their digits


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured speed of a job under what it held, on all its nodes; infinite is more than enough."""

    workers: int
    samples_per_s: float
    servers: int = 0
    cpus: float = math.inf
    memory_gb: float = math.inf
    gpu_type: str = DEFAULT_GPU_TYPE
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same in all samples.

    batch, scaling  as in the profile
    network_gbps    that gradients get between nodes
    intra_gbps      that they get inside a node
    dataset_gb      size of the dataset; 0: memory is taken not to matter
    storage_mbps    that the job read with
    """

    batch: int = 1
    scaling: Scaling = "strong"
    network_gbps: float = NETWORK_GBPS
    intra_gbps: float = INTRA_GBPS
    dataset_gb: float = 0.0
    storage_mbps: float = STORAGE_MBPS


def load_samples(path: StrPath) -> list[Sample]:
    """Read a CSV of samples."""
    from trainyard.files import schemas

    where = name_of(path)
    text = read_text(path, f"a header line such as {','.join(COLUMNS)}")
    table = CsvTable(text, where, COLUMNS, REQUIRED)
    _refuse_unknown(table)
    found = []
    for row, at in table.records(COLUMNS):
        found.append(Sample(**check(schemas.SAMPLE, row, at, cells=True)))
        _refuse_impossible(found[-1], at)
    if not found:
        raise InputError("there are no samples; it must have a row for each measured speed", where=where)
    return found


def wrong_in(sample: Sample) -> tuple[str, str] | None:
    """Return the field of a sample that cannot be, and why, if there is one."""
    for field, value in (("samples_per_s", sample.samples_per_s), ("cpus", sample.cpus)):
        if not LEAST_SPEED <= value <= MOST_SPEED and not (field == "cpus" and value == math.inf):
            much = "small" if value < LEAST_SPEED else "large"
            return field, f"{value:g} is too {much}; it must be from {LEAST_SPEED:g} to {MOST_SPEED:g}"
    if sample.nodes > sample.workers:
        workers = sample.workers
        return "nodes", f"{sample.nodes} nodes for {workers} workers; it must be at most {workers}"
    return None


def _refuse_impossible(sample: Sample, at: Position) -> None:
    if wrong := wrong_in(sample):
        field, what = wrong
        raise at.error(what, field)


def _refuse_unknown(table: CsvTable) -> None:
    for name in table.header:
        if name and name not in COLUMNS:
            absent = [column for column in COLUMNS if column not in table.header]
            hint = did_you_mean(name, absent) if absent else "; leave it out"
            raise InputError(f"unknown column '{name}'{hint}", where=table.where, line=1, field=name)


def gpu_types(samples: Sequence[Sample]) -> list[str]:
    """GPU types in order of appearance."""
    return list(dict.fromkeys(sample.gpu_type for sample in samples))


def shapes_of(samples: Sequence[Sample], setting: Setting) -> Shapes:
    """Samples as the speed model asks for them; columns of workers are `gpu_types`."""
    types, n = gpu_types(samples), len(samples)
    workers = np.zeros((n, len(types)), dtype=np.int64)
    workers[np.arange(n), [types.index(s.gpu_type) for s in samples]] = [s.workers for s in samples]
    nodes = np.array([s.nodes for s in samples], dtype=np.int64)
    return Shapes(
        workers=workers,
        servers=np.array([s.servers for s in samples], dtype=np.int64),
        nodes=nodes,
        bandwidth_gbps=np.where(nodes > 1, setting.network_gbps, setting.intra_gbps),
        cpus=np.array([s.cpus for s in samples]),
        memory_gb=np.array([s.memory_gb for s in samples]),
        storage_mbps=np.full(n, setting.storage_mbps),
    )


def predicted(profile: Profile, samples: Sequence[Sample], setting: Setting) -> Floats:
    """Return the speeds that a profile tells for samples, by the speed model."""
    nodes = tuple(Node(t, t, 1, 1.0, 1.0) for t in gpu_types(samples))
    return SpeedModel(Cluster("samples", nodes)).bulk(profile, shapes_of(samples, setting))
