"""The four stages of a policy, as interfaces. Each is a small class with one public question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from trainyard.model.allocation import Allocation, Share
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.policy.choose.walk import greedy
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot

Fill = Literal["strict", "greedy", "easy"]
Changes = Mapping[str, Allocation | None]
FALLBACK = "fallback"  # the note of a learned stage that names the stage which decided in its place


class Stage:
    """What any stage of a policy may say of itself."""

    period_s: float = inf  # it wants to be asked at every multiple of these seconds, while anything runs

    def wake_s(self, snapshot: Snapshot, changes: Changes) -> float:
        """Return when its answer may change by itself, if these changes are made and nothing else comes."""
        return inf

    def improve(self, snapshot: Snapshot, draft: Draft) -> None:
        """Change a draft in which every job has found its place: move others, share out, swap."""


class Order(Stage, ABC):
    """Who goes first? Ranks active jobs; a non-preemptive order ranks only those that wait."""

    preemptive: ClassVar[bool] = True
    takes_turns: bool = False  # whether the key of a job rises while it runs, so that others come before it
    fill: Fill = "greedy"
    half_life_s: float | None = None  # of the usage that it goes by, if it does

    @abstractmethod
    def rank(self, snapshot: Snapshot) -> Ints:
        """Return rows of the job table, first come first."""

    def heads(self, snapshot: Snapshot) -> Iterator[Record]:
        """Yield the ranking job by job; an order that can do so lazily does."""
        records = snapshot.table.records
        return (records[row] for row in self.rank(snapshot).tolist())

    def blocked(self, snapshot: Snapshot) -> bool:
        """Whether the first in line surely asks for more than is free, and nobody may pass."""
        return False

    def choose(self, snapshot: Snapshot, demand: Floats) -> Ints:
        """Return the rows that fit at once, in order, if row i asks for demand[i] GPUs."""
        ranked = self.rank(snapshot)
        return ranked[greedy(demand[ranked], snapshot.up_gpus)]


class Shapes(NamedTuple):
    """How big each ranked job should be, column by column."""

    gpus: Ints  # 0: wait
    servers: Ints | None = None  # parameter servers; None: one for each worker of a job that has any
    by_type: Ints | None = None  # the GPUs by type (columns), where the stage chooses that too


class Chosen(NamedTuple):
    """The answer of a size stage."""

    shapes: Shapes
    notes: Mapping[str, Any] = {}  # what else there is to say of this decision


class Size(Stage, ABC):
    """How big is each job?"""

    whole_gangs: ClassVar[bool] = False  # whether every job runs as requested or not at all
    order: ClassVar[str] = ""  # the order that goes with it where the policy names none
    refusal: ClassVar[str] = ""  # why a job may have to wait although there is room for it
    cuts: ClassVar[bool] = False  # whether fewer workers on one node are welcome where all would span several

    @abstractmethod
    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return the shape of each ranked row, within the capacity of the cluster."""

    def needs(self, job: Job) -> int:
        """Return the fewest GPUs that it would let the job run with."""
        return job.least_gpus

    def smaller(self, job: Job, gpus: int) -> Iterator[int]:
        """Yield sizes to try where there is no room for the chosen one, in steps of an eighth."""
        while gpus > job.least_gpus:
            gpus = max(gpus - max(gpus // 8, 1), job.least_gpus)
            yield gpus


class Place(Stage, ABC):
    """Where does it run?"""

    @abstractmethod
    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Return nodes for the whole gang, or None if it does not fit."""

    def find_by_type(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Return the same where the GPUs of each type are settled: one type after the other."""
        parts = list(request.of_each_type())
        if len(parts) == 1:
            return self.find(parts[0], free, nodes, seed)
        room, shares = free.copy(), dict[str, Share]()
        for part in parts:
            found = self.put(part, room, nodes, seed)
            if found is None:
                return None
            for share in found.shares:
                had = shares.get(share.node)
                shares[share.node] = share if had is None else had.plus(share)
        return Allocation(tuple(shares.values()))

    def put(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Return nodes, and take what they give out of what is free."""
        allocation = self.find(request, free, nodes, seed)
        if allocation is not None:
            request.take(allocation, free, nodes)
        return allocation


class Tune(Stage, ABC):
    """How much CPU and memory goes with each GPU?"""

    by_gpus: ClassVar[bool] = True  # whether jobs that ask for the same GPUs fit in the same places

    @abstractmethod
    def request(self, snapshot: Snapshot, job: Job, gpus: int, gpu_type: int) -> Request:
        """Return what to ask the place stage for."""

    def ground(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot as the stages before this one should see it."""
        return snapshot


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
