"""The speed model: samples per second of a job under what it holds.

    step  = max( overlap(compute, communication), input_cpu, input_storage )
    speed = samples per step / step

A `workers_servers` table stands in for overlap(compute, communication), scaled by the mean speed of the job's
GPUs; a `cpu_memory` table stands in for the input part. A job without a profile is linear: the sum of its
GPUs' speeds, in GPU-seconds per second. A job without GPUs stands still.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainyard.errors import InputError
from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.job import Job
from trainyard.model.kind import Content
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.speed.allreduce import allreduce_s
from trainyard.model.speed.compute import most_samples, per_sample_s, samples_per_step, variable_s
from trainyard.model.speed.inputs import input_cpu_s, input_storage_s
from trainyard.model.speed.overlap import LayerShares, layer_shares, overlapped_s
from trainyard.model.speed.packing import Packing
from trainyard.model.speed.paramserver import one_way_s, overhead_s
from trainyard.model.speed.ratios import Ratios, ratios_of
from trainyard.model.speed.shapes import Shapes
from trainyard.model.speed.split import split_batch
from trainyard.model.speed.tables import Table, table_of
from trainyard.model.tolerance import COUNT


class _Row(NamedTuple):
    """One row of Shapes: all that a job's speed depends on besides its profile."""

    workers: tuple[int, ...]
    servers: int
    nodes: int
    bandwidth_gbps: float
    cpus: float
    memory_gb: float
    storage_mbps: float


@dataclass(slots=True)
class _Known:
    """A profile made ready for arrays, with the speeds already asked for."""

    profile: Profile
    per_sample_s: Floats
    most_samples: Floats | None  # of a step, by GPU type
    compute: Compute
    sync: Sync
    gradient_mb: float
    shares: LayerShares | None
    workers_servers: Table | None
    cpu_memory: Table | None
    rates: dict[_Row, float] = field(default_factory=dict)
    reference_rates: dict[int, float] = field(default_factory=dict)
    surfaces: dict[tuple[object, ...], Floats] = field(default_factory=dict)


class SpeedModel:
    """Speeds on one cluster, for one allocation or for arrays of candidate shapes."""

    def __init__(self, cluster: Cluster) -> None:
        table = NodeTable(cluster)
        self._cluster = cluster
        self._types = table.types
        self._speeds = table.speeds
        self._speed_list: list[float] = table.speeds.tolist()
        self._only_speed = self._speed_list[0] if len(self._speed_list) == 1 else None
        self._type_of = {node.node_id: table.type_index[node.gpu_type] for node in cluster.nodes}
        self._node = {node.node_id: node for node in cluster.nodes}
        self._packings = [Packing([n for n in cluster.nodes if n.gpu_type == t]) for t in table.types]
        self._reference_type = _nearest_to_one(table)
        self._profiles: dict[Content, _Known] = {}
        self._surfaces: dict[tuple[object, ...], Floats] = {}  # of jobs without a profile
        self.factors: dict[str, float] = {}  # by kind: none, the profiles are believed
        self.derived: dict[
            tuple[object, ...], Any
        ] = {}  # what others worked out from these speeds, by their keys

    def bulk(self, profile: Profile | None, shapes: Shapes) -> Floats:
        """Samples per second of each shape; GPU-seconds per second without a profile."""
        if profile is None:
            return self._linear_speed(shapes.workers, self._speeds)
        known = self._know(profile)
        return self._speed(known, shapes, known.per_sample_s, self._speeds)

    def speeds(self, job: Job, shapes: Shapes) -> Floats:
        """Samples per second of a job in each shape."""
        return self.bulk(job.profile, shapes)

    def rate(self, job: Job, allocation: Allocation) -> float:
        """Samples per second of a job under what it holds: the same number as `bulk` gives."""
        if job.profile is None:
            only = self._only_speed
            return self._linear_rate(allocation) if only is None else allocation.gpus * only
        known = self._know(job.profile)
        row = self._row(allocation, job.profile.server if job.profile.apart else None)
        speed = known.rates.get(row)
        if speed is None:
            speed = float(self.bulk(job.profile, _shapes([row], len(self._types)))[0])
            known.rates[row] = speed
        return speed

    def shapes_of(self, allocations: Sequence[Allocation]) -> Shapes:
        """Allocations as arrays."""
        return _shapes([self._row(allocation) for allocation in allocations], len(self._types))

    def proportional(self, workers: Ints, servers: Ints | None = None, nodes: Ints | None = None) -> Shapes:
        """Shapes of (n, types) workers on the fewest nodes, with the part of them that goes with the GPUs."""
        packed = [packing.of(workers[:, column]) for column, packing in enumerate(self._packings)]
        network: Floats = np.minimum.reduce([p.network_gbps for p in packed])
        spanned: Ints = np.add.reduce([p.nodes for p in packed]) if nodes is None else nodes
        intra: Floats = np.minimum.reduce([np.where(p.nodes > 0, p.intra_gbps, np.inf) for p in packed])
        return Shapes(
            workers=workers,
            servers=np.zeros(len(workers), dtype=np.int64) if servers is None else servers,
            nodes=spanned,
            bandwidth_gbps=np.where(spanned > 1, network, intra),
            cpus=_added(p.cpus for p in packed),
            memory_gb=_added(p.memory_gb for p in packed),
            storage_mbps=_added(p.storage_mbps for p in packed),
        )

    def reference_rate(self, job: Job) -> float:
        """Samples per second with exactly the asked GPUs of speed 1.0, packed, with a proportional share.

        They are of the cluster's GPU type whose speed is 1.0, else nearest to it; the computation of the
        latter is scaled to speed 1.0.
        """
        if job.profile is None:
            return float(job.gpus)
        known = self._know(job.profile)
        speed = known.reference_rates.get(job.gpus)
        if speed is None:
            workers = np.zeros((1, len(self._types)), dtype=np.int64)
            workers[0, self._reference_type] = job.gpus
            at_one = known.per_sample_s * self._speeds
            shapes = self.proportional(workers, np.array([job.servers]))
            speed = float(self._speed(known, shapes, at_one, np.ones(len(self._types)))[0])
            known.reference_rates[job.gpus] = speed
        return speed

    def curve(self, job: Job, gpu_type: int, most: int) -> Floats:
        """Samples per second with 0 to `most` GPUs of a type, packed; a server for each worker, if any.

        The answer is one object for all jobs that are alike in this.
        """
        return self._surface(job, gpu_type, (most + 1,))

    def surface(self, job: Job, gpu_type: int, most: int, servers: int) -> Floats:
        """Samples per second by GPUs of a type, 0 to `most` (rows), and servers, 0 to `servers` (columns)."""
        return self._surface(job, gpu_type, (most + 1, servers + 1))

    def _surface(self, job: Job, gpu_type: int, shape: tuple[int, ...]) -> Floats:
        known = self._surfaces if job.profile is None else self._know(job.profile).surfaces
        cpus, memory_gb = job.asked_per_gpu
        key = (gpu_type, shape, cpus, memory_gb)
        speeds = known.get(key)
        if speeds is None:
            gpus, servers = np.indices((*shape, 1)[:2]).reshape(2, -1)
            if len(shape) == 1 and job.profile is not None and job.profile.serves:
                servers = gpus
            workers = np.zeros((len(gpus), len(self._types)), dtype=np.int64)
            workers[:, gpu_type] = gpus
            shapes = self.proportional(workers, servers)
            if job.profile is not None and job.profile.apart:
                nodes = np.maximum(shapes.nodes, self._spanned(job, gpu_type, gpus, servers))
                shapes = self.proportional(workers, servers, nodes)
            speeds = known[key] = self.bulk(job.profile, _as_asked(job, shapes)).reshape(shape)
        return speeds

    def mixed(self, job: Job, workers: Ints) -> Floats:
        """Samples per second with (n, types) workers, packed; a server for each worker, if any."""
        serves = job.profile is not None and job.profile.serves
        shapes = self.proportional(workers, workers.sum(axis=1) if serves else None)
        return self.bulk(job.profile, _as_asked(job, shapes))

    def _spanned(self, job: Job, gpu_type: int, gpus: Ints, servers: Ints) -> Ints:
        """Nodes of a type that workers and servers need at least for their CPUs and memory."""
        assert job.profile is not None
        assert job.profile.server is not None
        nodes = [n for n in self._cluster.nodes if n.gpu_type == self._types[gpu_type]]
        server, (cpus, memory_gb) = job.profile.server, job.asked_per_gpu
        by_cpu = (gpus * (cpus or 0.0) + servers * server.cpus) / max(n.cpus for n in nodes)
        by_memory = (gpus * (memory_gb or 0.0) + servers * server.memory_gb) / max(n.memory_gb for n in nodes)
        spanned: Ints = np.ceil(np.maximum(by_cpu, by_memory) - COUNT).astype(np.int64)
        return spanned

    def batch_split(self, job: Job, allocation: Allocation) -> dict[str, list[int]] | None:
        """Whole samples of a step of each worker, by node; None if the profile has no batch to split."""
        profile = job.profile
        if profile is None or profile.compute is None or not profile.compute.per_sample_s:
            return None
        known, parts = self._know(profile), [share for share in allocation.shares if share.gpus]
        types = np.repeat([self._type_of[share.node] for share in parts], [share.gpus for share in parts])
        batch = int(samples_per_step(profile, np.array([len(types)]))[0])
        speeds = (
            1.0 / known.per_sample_s[types]
            if profile.compute.split == "proportional"
            else np.ones(len(types))
        )
        most = None if known.most_samples is None else known.most_samples[types].astype(np.int64)
        split = split_batch(batch, speeds, most)
        if split is None:  # several passes
            split = split_batch(batch, speeds)
        assert split is not None
        ends = np.cumsum([share.gpus for share in parts])[:-1]
        return {s.node: part.tolist() for s, part in zip(parts, np.split(split, ends), strict=True)}

    def ratios(self, job: Job, gpu_type: int, bandwidth_gbps: float) -> Ratios | None:
        """The time of a sample as a sum of ratios of workers and servers; None if it has another form."""
        if job.profile is None:
            return None
        each_s = float(self._know(job.profile).per_sample_s[gpu_type])
        return ratios_of(job.profile, each_s, bandwidth_gbps)

    def total_samples(self, job: Job) -> float:
        """The whole work of a job: its samples, or what it does in its duration at the reference rate."""
        if job.samples is not None:
            return job.samples
        if job.duration_s is None:
            raise InputError(f"job {job.job_id} has neither duration_s nor samples; give one of them")
        return job.duration_s * self.reference_rate(job)

    def ideal_s(self, job: Job) -> float:
        """Run time alone, at the reference rate; infinite if it never ends."""
        if job.duration_s is not None:
            return job.duration_s
        rate = self.reference_rate(job)
        return self.total_samples(job) / rate if rate > 0 else float("inf")

    def work(self, job: Job) -> tuple[float, float, float]:
        """Total samples, reference rate and ideal seconds of a job; 0 samples and seconds if nobody told."""
        rate = float(job.gpus) if job.profile is None else self.reference_rate(job)
        if not rate > 0:
            where = f"with {job.gpus} GPUs and their share of CPUs and memory"
            raise InputError(f"job {job.job_id}: its profile gives 0 samples/s {where}; it would never end")
        if job.samples is None and job.duration_s is not None:
            return job.duration_s * rate, rate, job.duration_s
        if job.samples is None:
            return 0.0, rate, 0.0
        return self.total_samples(job), rate, self.ideal_s(job)

    def _know(self, profile: Profile) -> _Known:
        known = self._profiles.get(profile.content)
        if known is None:
            known = self._profiles[profile.content] = self._learn(profile)
        return known

    def _learn(self, profile: Profile) -> _Known:
        sync, tables = profile.sync or Sync(kind="none"), profile.tables
        return _Known(
            profile=profile,
            per_sample_s=per_sample_s(profile, self._cluster, self._types),
            most_samples=most_samples(profile, self._cluster, self._types),
            compute=profile.compute or Compute(),
            sync=sync,
            gradient_mb=sync.gradient_mb or sum(layer.mb for layer in profile.layers),
            shares=layer_shares(profile.layers) if profile.layers else None,
            workers_servers=table_of(tables.workers_servers) if tables and tables.workers_servers else None,
            cpu_memory=table_of(tables.cpu_memory) if tables and tables.cpu_memory else None,
        )

    def _speed(self, known: _Known, shapes: Shapes, seconds: Floats, speeds: Floats) -> Floats:
        workers = shapes.workers.sum(axis=1)
        with np.errstate(all="ignore"):
            if known.workers_servers is not None:
                table = known.workers_servers.at(
                    workers.astype(np.float64), shapes.servers.astype(np.float64)
                )
                speed = table * (self._linear_speed(shapes.workers, speeds) / workers)
            else:
                speed = _core_speed(known, shapes, workers, seconds)
            speed = np.minimum(speed, _input_limit(known, shapes, workers))
        return np.where(workers > 0, speed, 0.0)

    def _linear_speed(self, workers: Ints, speeds: Floats) -> Floats:
        return _added(workers[:, column] * speed for column, speed in enumerate(speeds.tolist()))

    def _linear_rate(self, allocation: Allocation) -> float:
        speeds, type_of = self._speed_list, self._type_of
        counts = [0] * len(speeds)
        for share in allocation.shares:
            counts[type_of[share.node]] += share.gpus
        total = 0.0
        for count, speed in zip(counts, speeds, strict=True):
            total += count * speed
        return total

    def _row(self, allocation: Allocation, server: Demand | None = None) -> _Row:
        """What counts of an allocation; what its servers hold of their own does not feed the workers."""
        counts, servers, nodes = [0] * len(self._types), 0, 0
        intra = network = float("inf")
        cpus = memory_gb = storage_mbps = 0.0
        for share in allocation.shares:
            node = self._node[share.node]
            cpus += share.cpus
            memory_gb += share.memory_gb
            if share.gpus or share.servers:
                nodes += 1
                servers += share.servers
                intra, network = node.intra_gbps, min(network, node.network_gbps)
            if share.gpus:
                counts[self._type_of[share.node]] += share.gpus
                storage_mbps += share.gpus * (node.storage_mbps / node.gpus)
        bandwidth = intra if nodes == 1 else network
        if server is not None:
            cpus -= servers * server.cpus
            memory_gb -= servers * server.memory_gb
        return _Row(tuple(counts), servers, nodes, bandwidth, cpus, memory_gb, storage_mbps)


def _as_asked(job: Job, shapes: Shapes) -> Shapes:
    """Shapes with the CPUs and memory that a job asks for, where it does."""
    gpus, (cpus, memory_gb) = shapes.workers.sum(axis=1), job.asked_per_gpu
    if cpus is not None:
        shapes = replace(shapes, cpus=np.multiply(gpus, cpus, dtype=np.float64))
    if memory_gb is not None:
        shapes = replace(shapes, memory_gb=np.multiply(gpus, memory_gb, dtype=np.float64))
    return shapes


def _core_speed(known: _Known, shapes: Shapes, workers: Ints, seconds: Floats) -> Floats:
    """Samples per second that computation and communication allow."""
    samples = samples_per_step(known.profile, workers)
    if known.sync.kind == "ps" and known.sync.mode == "async":
        each = samples / workers  # no worker waits: each goes at its own pace with an equal batch
        return _added(
            shapes.workers[:, column] * each / _step_s(known, shapes, workers, each * per_sample)
            for column, per_sample in enumerate(seconds.tolist())
        )
    variable = variable_s(known.compute.split, samples, shapes.workers, seconds, known.most_samples)
    return samples / _step_s(known, shapes, workers, variable)


def _step_s(known: _Known, shapes: Shapes, workers: Ints, variable: Floats) -> Floats:
    push, pull = _communication_s(known, shapes, workers)
    step = overlapped_s(known.sync, known.shares, known.compute.fixed_s, variable, push, pull)
    return step + overhead_s(known.sync, workers, shapes.servers)


def _communication_s(known: _Known, shapes: Shapes, workers: Ints) -> tuple[Floats, Floats]:
    sync, none = known.sync, np.zeros(len(workers))
    if sync.kind == "none":
        return none, none
    if sync.kind == "ring":
        return allreduce_s(sync, known.gradient_mb, workers, shapes.bandwidth_gbps), none
    one_way = one_way_s(sync, known.gradient_mb, workers, shapes.servers, shapes.bandwidth_gbps)
    return one_way, one_way


def _input_limit(known: _Known, shapes: Shapes, workers: Ints) -> Floats:
    """Samples per second that the input pipeline allows."""
    if known.cpu_memory is not None:
        return workers * known.cpu_memory.at(shapes.cpus / workers, shapes.memory_gb / workers)
    if known.profile.input is None:
        return np.full(len(workers), np.inf)
    samples = samples_per_step(known.profile, workers)
    cpu_s = input_cpu_s(known.profile.input, samples, shapes.cpus)
    storage_s = input_storage_s(known.profile.input, samples, shapes.memory_gb, shapes.storage_mbps)
    return samples / np.maximum(cpu_s, storage_s)


def _shapes(rows: Sequence[_Row], types: int) -> Shapes:
    def column(name: str, kind: type) -> npt.NDArray[Any]:
        return np.array([getattr(row, name) for row in rows], dtype=kind)

    return Shapes(
        workers=column("workers", np.int64).reshape(len(rows), types),
        servers=column("servers", np.int64),
        nodes=column("nodes", np.int64),
        bandwidth_gbps=column("bandwidth_gbps", np.float64),
        cpus=column("cpus", np.float64),
        memory_gb=column("memory_gb", np.float64),
        storage_mbps=column("storage_mbps", np.float64),
    )


def _added(columns: Iterable[Floats]) -> Floats:
    """Sum in the order given: the same for one row and for many."""
    return reduce(np.add, columns)


def _nearest_to_one(table: NodeTable) -> int:
    """Column of the GPU type whose speed is nearest 1.0 by ratio; the first of equals."""
    far = np.where(table.gpus_of_type > 0, np.abs(np.log(table.speeds)), np.inf)
    return int(far.argmin()) if len(far) else 0
