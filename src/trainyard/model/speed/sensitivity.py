"""How a job's speed depends on CPUs and memory: a ladder from the least that will do to its best-case demand.

Everything is counted in proportional shares: 1.0 is the part of its nodes that goes with its GPUs. So the
rungs of a job that spans unlike nodes mean the same on each of them, and a share of a node is a rung times
that node's proportional share. From rung to rung neither CPUs nor memory shrink and the speed grows; the
lowest rung needs no more than the proportional share and is as fast, the top rung is the least that reaches
full speed (Synergy's best-case demand). A job that nothing is known of has one rung: the proportional share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from trainyard.model.allocation import Allocation, Share
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Input, Profile
from trainyard.model.speed.model import SpeedModel
from trainyard.model.speed.shapes import Shapes
from trainyard.model.tolerance import PART

# What a worker needs at least when its profile has no `worker` part that says so.
LEAST_CPUS = 1.0
LEAST_MEMORY_GB = 8.0
LEVELS = 13  # speeds at which an input pipeline without a table is looked at
UNEVEN = 0.03  # how much slower than in proportion to the way a step may be on the way
PROBES = 33
Workers = tuple[tuple[str, int], ...]  # (node, GPUs)


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: ladders are keys
class Ladder:
    """Rungs in proportional shares of CPUs and memory, and the speed relative to the proportional share's."""

    cpus: tuple[float, ...]
    memory: tuple[float, ...]
    speed: tuple[float, ...]
    between: tuple[bool, ...]  # step k, up to rung k + 1: whether one may stop on the way

    def at(self, place: float) -> tuple[float, float]:
        """CPUs and memory at a place between rungs."""
        k = int(place)
        part = place - k
        if not part:
            return self.cpus[k], self.memory[k]
        return (
            self.cpus[k] + part * (self.cpus[k + 1] - self.cpus[k]),
            self.memory[k] + part * (self.memory[k + 1] - self.memory[k]),
        )

    @cached_property
    def top(self) -> int:
        """Number of the best-case rung."""
        return len(self.cpus) - 1


class Rungs:
    """The ladders of many jobs as arrays: all rungs of all different ladders in a row."""

    def __init__(self, ladders: list[Ladder]) -> None:
        number = {ladder: k for k, ladder in enumerate(dict.fromkeys(ladders))}
        self.kind = [number[ladder] for ladder in ladders]  # the number of each job's ladder
        heights = np.array([len(ladder.cpus) for ladder in number], dtype=np.int64)
        self.tops: Ints = (heights - 1)[self.kind]
        self._lowest: Ints = (heights.cumsum() - heights)[self.kind]
        rungs = [rung for ladder in number for rung in zip(ladder.cpus, ladder.memory, strict=True)]
        self._shares: Floats = np.array([*rungs, (0.0, 0.0)]).T
        self._steps: Floats = np.zeros_like(self._shares)
        self._steps[:, :-1] = self._shares[:, 1:] - self._shares[:, :-1]

    def at(self, places: list[float]) -> Floats:
        """CPUs and memory of each job at its place, like `Ladder.at`."""
        place = np.array(places, dtype=np.float64)
        rung = place.astype(np.int64)
        at = self._lowest + rung
        shares: Floats = self._shares[:, at] + (place - rung) * self._steps[:, at]
        return shares


AS_IT_IS = Ladder((1.0,), (1.0,), (1.0,), ())


class _Spot(NamedTuple):
    """Where a job sits, as far as its ladder depends on it."""

    shape: Shapes  # one row, with the proportional share
    gpus: int
    cpus: float  # per GPU, of the proportional share
    memory_gb: float
    most_cpus: float  # per GPU, of the nodes altogether
    most_memory_gb: float


class Sensitivity:
    """Ladders of jobs on one cluster, worked out once for each profile and kind of place."""

    def __init__(self, cluster: Cluster, speed: SpeedModel) -> None:
        self._speed = speed
        self._ids = [node.node_id for node in cluster.nodes]
        self._node = {node.node_id: node for node in cluster.nodes}
        self._alone = _largest_by_type(cluster)
        self._ladders: dict[tuple[object, ...], Ladder] = {}

    def ladder(self, job: Job, workers: Workers) -> Ladder:
        """Return the ladder of a job with the given GPUs on each of these nodes."""
        if job.particular:
            return self._as_asked(job, workers)
        if job.profile is None:
            return AS_IT_IS
        key = (job.content, workers)
        ladder = self._ladders.get(key)
        if ladder is None:
            ladder = self._ladders[key] = self._of_kind(job.profile, workers)
        return ladder

    def ladders(self, jobs: list[Job], parts: list[list[tuple[int, int]]]) -> list[Ladder]:
        """Return the ladders of many jobs with these parts: (number of the node in the cluster, GPUs)."""
        keys = [(job.kind, *part) for job, part in zip(jobs, parts, strict=True)]
        found = list(map(self._ladders.get, keys))
        for k in [k for k, ladder in enumerate(found) if ladder is None]:
            workers = tuple((self._ids[node], gpus) for node, gpus in parts[k])
            found[k] = self._ladders[keys[k]] = self.ladder(jobs[k], workers)
        return cast("list[Ladder]", found)

    def best_demand(self, job: Job, gpus: int, gpu_type: str = "") -> tuple[float, float]:
        """The most CPUs and GB per GPU that a job of this size can use, on nodes of its own."""
        node = self._alone[gpu_type or job.gpu_type or next(iter(self._alone))]
        here = min(gpus, node.gpus)
        ladder = self.ladder(job, ((node.node_id, here),))
        return ladder.cpus[-1] * node.cpus / node.gpus, ladder.memory[-1] * node.memory_gb / node.gpus

    def best_demands(self, jobs: list[Job]) -> tuple[Floats, Floats]:
        """Best-case CPUs and GB per GPU of many jobs, each with the GPUs it asks for."""
        pairs = np.array([self.best_demand(job, job.gpus) for job in jobs], dtype=np.float64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _as_asked(self, job: Job, workers: Workers) -> Ladder:
        """One rung: what its user asked for."""
        cpus, memory_gb = _proportional(self._nodes(workers))
        own_cpus, own_memory = job.asked_per_gpu
        asked_cpus = 1.0 if own_cpus is None else own_cpus / cpus
        asked_memory = 1.0 if own_memory is None else own_memory / memory_gb
        return Ladder((asked_cpus,), (asked_memory,), (1.0,), ())

    def _nodes(self, workers: Workers) -> list[tuple[Node, int]]:
        return [(self._node[node], gpus) for node, gpus in workers if gpus]

    def _of_kind(self, profile: Profile, workers: Workers) -> Ladder:
        """Like `ladder`; places that differ in nothing but the names of their nodes share one."""
        nodes = self._nodes(workers)
        kind = (profile.content, *((node.gpu_type, node.gpus, *_sizes(node), gpus) for node, gpus in nodes))
        ladder = self._ladders.get(kind)
        if ladder is None:
            ladder = self._ladders[kind] = climb(self._speed, profile, self._spot(nodes))
        return ladder

    def _spot(self, nodes: list[tuple[Node, int]]) -> _Spot:
        gpus = sum(count for _, count in nodes)
        cpus, memory_gb = _proportional(nodes)
        share = tuple(
            Share(n.node_id, count, 0, count * n.cpus / n.gpus, count * n.memory_gb / n.gpus)
            for n, count in nodes
        )
        # A rung is the same multiple of the proportional share on every node, so the fullest node limits it.
        most = min(n.gpus / count for n, count in nodes)
        shape = self._speed.shapes_of([Allocation(share)])
        return _Spot(shape, gpus, cpus, memory_gb, cpus * most, memory_gb * most)


def climb(speed: SpeedModel, profile: Profile, spot: _Spot) -> Ladder:
    """Work out the ladder of a profile at one kind of place."""
    axes = _axes(speed, profile, spot)
    if axes is None:
        return AS_IT_IS
    cpus, memory = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    rates = _rates(speed, profile, spot, cpus, memory)
    proportional = float(_rates(speed, profile, spot, np.array([spot.cpus]), np.array([spot.memory_gb]))[0])
    if not proportional > 0 or not spot.cpus > 0 or not spot.memory_gb > 0:
        return AS_IT_IS
    chain = _chain(cpus / spot.cpus, memory / spot.memory_gb, rates / proportional)
    rungs = np.stack([cpus[chain], memory[chain]])
    rungs[:, -1] = _least_full(speed, profile, spot, rungs)
    found = _rates(speed, profile, spot, *rungs)
    shares = rungs / np.array([[spot.cpus], [spot.memory_gb]])
    between = [_passable(speed, profile, spot, rungs[:, k : k + 2], axes) for k in range(len(chain) - 1)]
    share_cpus, share_memory, relative = (tuple(c.tolist()) for c in (*shares, found / proportional))
    return Ladder(share_cpus, share_memory, relative, tuple(between))


def _least_full(speed: SpeedModel, profile: Profile, spot: _Spot, rungs: Floats) -> Floats:
    """The first point of the last step that is as fast as its end: something else may cap the speed."""
    if rungs.shape[1] < 2:
        return rungs[:, -1]
    low, high = rungs[:, -2:-1], rungs[:, -1:]
    full = _rates(speed, profile, spot, *high)[0] * (1 - PART)
    for _ in range(3):
        points = low + np.linspace(0.0, 1.0, PROBES) * (high - low)
        first = int((_rates(speed, profile, spot, *points) >= full).argmax())
        low, high = points[:, max(first - 1, 0), None], points[:, first, None]
    return high[:, 0]


def _chain(cpus: Floats, memory: Floats, speed: Floats) -> Ints:
    """Pick rungs out of candidates: always the step that gains most speed for what it costs."""
    cost = cpus + memory
    enough = (cpus <= 1 + PART) & (memory <= 1 + PART) & (speed >= 1 - PART)
    here = int(np.where(enough, cost, np.inf).argmin())
    above = (cpus >= cpus[here]) & (memory >= memory[here])
    full = above & (speed >= speed[above].max() * (1 - PART))
    top = int(np.where(full, cost, np.inf).argmin())
    chain = [here]
    while here != top and speed[here] < speed[top] * (1 - PART):
        ahead = (cpus >= cpus[here]) & (memory >= memory[here]) & (cpus <= cpus[top])
        ahead &= (memory <= memory[top]) & (speed > speed[here] * (1 + PART))
        gain = (speed - speed[here]) / np.maximum(cost - cost[here], PART)
        here = int(np.where(ahead, gain, -np.inf).argmax())
        chain.append(here)
    return np.array(chain, dtype=np.int64)


def _passable(
    speed: SpeedModel, profile: Profile, spot: _Spot, step: Floats, axes: tuple[Floats, Floats]
) -> bool:
    """Whether one may stop on the way up: if the speed grows about evenly and without dips."""
    parts = [np.array([0.0, 1.0])]
    for (low, high), axis in zip(step, axes, strict=True):
        parts.append((axis[(axis > low) & (axis < high)] - low) / max(high - low, PART))
    at = np.unique(np.concatenate(parts))
    at = np.sort(np.concatenate([at, (at[1:] + at[:-1]) / 2]))  # knots, and between them
    # A table is curved between its knots: what is even there and in the middle may still dip elsewhere.
    probes = np.concatenate([at, np.linspace(0.0, 1.0, PROBES)])
    there = _rates(speed, profile, spot, *(step[:, :1] + probes * (step[:, 1:] - step[:, :1])))
    even = there[0] + at * (there[len(at) - 1] - there[0])
    dips = there.min() < there[0] * (1 - PART)
    return bool((there[: len(at)] >= even * (1 - UNEVEN)).all() and not dips)


def _rates(speed: SpeedModel, profile: Profile, spot: _Spot, cpus: Floats, memory: Floats) -> Floats:
    """Speeds with these CPUs and GB per GPU."""
    n, one = len(cpus), spot.shape
    shapes = Shapes(
        workers=np.repeat(one.workers, n, axis=0),
        servers=np.repeat(one.servers, n),
        nodes=np.repeat(one.nodes, n),
        bandwidth_gbps=np.repeat(one.bandwidth_gbps, n),
        cpus=cpus * spot.gpus,
        memory_gb=memory * spot.gpus,
        storage_mbps=np.repeat(one.storage_mbps, n),
    )
    return speed.bulk(profile, shapes)


def _axes(speed: SpeedModel, profile: Profile, spot: _Spot) -> tuple[Floats, Floats] | None:
    """CPUs and GB per GPU worth looking at, or None if nothing is known of what the job needs."""
    least_cpus = profile.worker.cpus if profile.worker else LEAST_CPUS
    least_memory = profile.worker.memory_gb if profile.worker else LEAST_MEMORY_GB
    if profile.tables is not None and profile.tables.cpu_memory:
        table = np.array(profile.tables.cpu_memory, dtype=np.float64)
        cpus, memory = np.unique(table[:, 0]), np.unique(table[:, 1])
    elif profile.input is not None:
        cpus, memory = _input_axes(speed, profile, profile.input, spot)
        cpus, memory = np.maximum(cpus, least_cpus), np.maximum(memory, least_memory)
    elif profile.worker is not None:
        cpus, memory = np.array([least_cpus]), np.array([least_memory])
    else:
        return None
    return _within(cpus, spot.cpus, spot.most_cpus), _within(memory, spot.memory_gb, spot.most_memory_gb)


def _input_axes(speed: SpeedModel, profile: Profile, known: Input, spot: _Spot) -> tuple[Floats, Floats]:
    """Per GPU, what each of some speeds from the proportional to the full one needs."""
    ends = np.array([spot.cpus, spot.most_cpus]), np.array([spot.memory_gb, spot.most_memory_gb])
    slow, fast = _rates(speed, profile, spot, *ends).tolist()
    rates = np.linspace(slow, fast, LEVELS)
    cpus = rates * known.cpu_s_per_sample / spot.gpus
    missed_mbps = rates * known.sample_kb * 1e-3
    share = np.minimum(1.0, float(spot.shape.storage_mbps[0]) / np.maximum(missed_mbps, PART))
    return cpus, known.dataset_gb * (1.0 - share) / spot.gpus


def _within(axis: Floats, proportional: float, most: float) -> Floats:
    """The values that the nodes have, with the proportional share and the whole of them."""
    return np.unique(np.append(np.minimum(axis, most), proportional))


def _proportional(nodes: list[tuple[Node, int]]) -> tuple[float, float]:
    """CPUs and GB per GPU that go with these GPUs."""
    gpus = sum(count for _, count in nodes)
    cpus = sum(count * node.cpus / node.gpus for node, count in nodes)
    memory_gb = sum(count * node.memory_gb / node.gpus for node, count in nodes)
    return cpus / gpus, memory_gb / gpus


def _sizes(node: Node) -> tuple[float, ...]:
    return node.cpus, node.memory_gb, node.network_gbps, node.intra_gbps, node.storage_mbps


def _largest_by_type(cluster: Cluster) -> dict[str, Node]:
    """The node of each GPU type that holds most GPUs, the fastest type first."""
    largest: dict[str, Node] = {}
    for node in sorted(cluster.nodes, key=lambda n: (-cluster.speed_of(n.gpu_type), -n.gpus)):
        if node.gpus:
            largest.setdefault(node.gpu_type, node)
    return largest
