"""The four stages of a policy, as interfaces. Each is a small class with one public question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.policy.choose.walk import greedy
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot

Fill = Literal["strict", "greedy", "easy"]
Changes = Mapping[str, Allocation | None]
FALLBACK = "fallback"  # the note of a learned stage that names the stage which decided in its place


class Order(ABC):
    """Who goes first? Ranks active jobs; a non-preemptive order ranks only those that wait."""

    preemptive: ClassVar[bool] = True
    fill: Fill = "greedy"

    @abstractmethod
    def rank(self, snapshot: Snapshot) -> Ints:
        """Return rows of the job table, first come first."""

    def heads(self, snapshot: Snapshot) -> Iterator[Record]:
        """Yield the ranking job by job; an order that can do so lazily does."""
        records = snapshot.table.records
        return (records[row] for row in self.rank(snapshot).tolist())

    def choose(self, snapshot: Snapshot, demand: Floats) -> Ints:
        """Return the rows that fit at once, in order, if row i asks for demand[i] GPUs."""
        ranked = self.rank(snapshot)
        return ranked[greedy(demand[ranked], snapshot.up_gpus)]

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when the ranking may change by itself, if these changes are made and nothing else comes."""
        return inf


class Sizes(NamedTuple):
    """How big each ranked job should be."""

    gpus: Ints  # 0: wait
    servers: Ints | None = None  # parameter servers; None: one for each worker of a job that has any
    mix: Ints | None = None  # workers by GPU type (columns), where the stage chooses that too
    notes: Mapping[str, Any] = {}  # what else there is to say of this decision


class Size(ABC):
    """How big is each job? `None` stands for: as requested, whole or not at all."""

    refusal: ClassVar[str] = ""  # why a job may have to wait although there is room for it
    cuts: ClassVar[bool] = False  # whether fewer workers on one node are welcome where all would span several

    @abstractmethod
    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes | None:
        """Return the size of each ranked row, within the capacity of the cluster."""

    def smaller(self, job: Job, gpus: int) -> Iterator[int]:
        """Yield sizes to try where there is no room for the chosen one, in steps of an eighth."""
        while gpus > job.least_gpus:
            gpus = max(gpus - max(gpus // 8, 1), job.least_gpus)
            yield gpus

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when sizes may change by themselves, if these changes are made and nothing else comes."""
        return inf


class Request(NamedTuple):
    """What one job needs from a place stage."""

    job: Job
    gpus: int
    gpu_type: int = -1  # index of the only GPU type it may use, or -1
    cpus_per_gpu: float | None = None  # None: the node's GPU-proportional share
    memory_per_gpu: float | None = None
    servers: int = 0
    server: Demand | None = None  # what each server holds; None: it lives on its workers' share
    mix: tuple[int, ...] | None = None  # workers by GPU type, if that is settled

    def take(self, allocation: Allocation, free: Room, nodes: NodeTable) -> None:
        """Take what was found for it out of what is free."""
        if self.cpus_per_gpu is not None or self.memory_per_gpu is not None:
            free.plain = False  # from now on a free GPU does not mean that its share is free
        free.take(nodes.index, allocation.shares)


class Place(ABC):
    """Where does it run?"""

    @abstractmethod
    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Return nodes for the whole gang, or None if it does not fit."""

    def put(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Return the same, and take it out of what is free."""
        allocation = self.find(request, free, nodes, seed)
        if allocation is not None:
            request.take(allocation, free, nodes)
        return allocation


class Tune(ABC):
    """How much CPU and memory goes with each GPU?"""

    retunes: ClassVar[bool] = False  # whether shares of running jobs change with the jobs beside them
    by_gpus: ClassVar[bool] = True  # whether jobs that ask for the same GPUs fit in the same places

    @abstractmethod
    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Return what to ask the place stage for."""

    def ground(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot as the stages before this one should see it."""
        return snapshot

    def share(self, snapshot: Snapshot, changes: Changes) -> Changes:
        """Hand out CPUs and memory once everything is placed; by default as requested."""
        return changes


class Stages(Protocol):
    """The four stages of one policy."""

    @property
    def order(self) -> Order:
        """Who goes first."""
        ...

    @property
    def size(self) -> Size:
        """How big each job is."""
        ...

    @property
    def place(self) -> Place:
        """Where each job runs."""
        ...

    @property
    def tune(self) -> Tune:
        """How much CPU and memory each job gets."""
        ...
