"""What the parts of the core see of a yard, so that each of them can stand alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from trainyard.core.events import CheckpointWritten, ProgressReported
from trainyard.core.instructions import Do
from trainyard.core.real.conditions import Conditions
from trainyard.core.real.over import Over
from trainyard.core.real.seats import Seats
from trainyard.core.real.timers import Timers
from trainyard.core.story import Story
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.policy import Decides
from trainyard.state.corrections import Corrections
from trainyard.state.jobs import JobTable
from trainyard.state.lifecycle import State
from trainyard.state.queue import Queue
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot
from trainyard.state.usage import Usage


class Works(Protocol):
    """A yard: its books, and what can be done with one job."""

    all_gpus: int
    cluster: Cluster
    conditions: Conditions
    corrections: Corrections
    decider: Callable[[Snapshot], Plan]
    counted: dict[str, int]
    free: Room
    leaving: dict[str, int]
    model: SpeedModel
    nodes: NodeTable
    now_s: float
    out: list[Do]
    over: Over
    paused: bool
    parked: dict[str, Record]
    pending: dict[str, None]
    policies: Callable[[str], Decides] | None
    records: dict[str, Record]
    refused: int
    rules: Rules
    seats: Seats | None
    several_types: bool
    speed: SpeedModel
    story: Story
    table: JobTable
    target: dict[str, Allocation]
    timers: Timers
    up_gpus: int
    usage: Usage | None
    view: Snapshot
    waiting: Queue

    def believe_corrections(self, corrections: Corrections) -> None: ...
    def change(
        self, record: Record, after: State, now: float, cause: str, allocation: Allocation | None = None
    ) -> None: ...
    def decide(self, now: float) -> None: ...
    def find(self, job_id: str) -> Record | None: ...
    def finish(self, now: float, record: Record, state: State = ..., cause: str = ...) -> None: ...
    def go_on(self, now: float) -> None: ...
    def leave(self, record: Record) -> None: ...
    def left(self, node: str) -> bool: ...
    def look_again(self, now: float) -> None: ...
    def meet(self, now: float) -> None: ...
    def node_failed(self, now: float, node: str) -> None: ...
    def node_repaired(self, now: float, node: str) -> None: ...
    def note(self, record: Record) -> None: ...
    def readmit(self, now: float, record: Record) -> None: ...
    def replace_job(self, record: Record, job: Job) -> None: ...
    def say_when(self) -> None: ...
    def stop(self, record: Record, now: float, step: int) -> None: ...
    def stopped(self, now: float, records: Sequence[Record]) -> None: ...
    def submit(self, now: float, job: Job) -> Record: ...
    def take_checkpoint(self, record: Record, written: CheckpointWritten) -> None: ...
    def take_report(self, record: Record, report: ProgressReported) -> None: ...
    def take_back(self, record: Record, now: float) -> None: ...
    def untarget(self, record: Record, now: float) -> None: ...
    def vacate(self, record: Record) -> bool: ...
