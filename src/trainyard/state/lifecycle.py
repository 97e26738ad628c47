"""Job states and the table of allowed changes."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a job is in its life."""

    SUBMITTED = "submitted"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    KILLING = "killing"
    HELD = "held"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


S = State

TRANSITIONS: dict[tuple[State | None, State], str] = {
    (None, S.SUBMITTED): "a user hands the job in",
    (S.SUBMITTED, S.WAITING): "accepted: it may be planned",
    (S.SUBMITTED, S.CANCELLED): "withdrawn before it was accepted",
    (S.WAITING, S.RUNNING): "a plan gives it an allocation and there is room",
    (S.WAITING, S.CANCELLED): "withdrawn while waiting",
    (S.WAITING, S.HELD): "held: it is not planned until it is released",
    (S.WAITING, S.FAILED): "it was not started in time",
    (S.HELD, S.WAITING): "released",
    (S.HELD, S.CANCELLED): "withdrawn while held",
    (S.HELD, S.FAILED): "it was not started in time",
    (S.RUNNING, S.RUNNING): "CPUs or memory change under the same workers",
    (S.RUNNING, S.STOPPING): "a plan takes or changes its workers: checkpoint and stop",
    (
        S.RUNNING,
        S.KILLING,
    ): "its processes are to end: a node failed, one of them did, or a user said so",
    (S.RUNNING, S.WAITING): "its run is gone: back to the last checkpoint",
    (S.RUNNING, S.HELD): "its run is gone once more without progress",
    (S.RUNNING, S.DONE): "all work done",
    (S.RUNNING, S.FAILED): "the job itself ended with an error",
    (S.RUNNING, S.CANCELLED): "withdrawn while running",
    (S.STOPPING, S.WAITING): "stopped, its checkpoint is written",
    (S.STOPPING, S.DONE): "finished before the stop reached it",
    (S.STOPPING, S.FAILED): "ended with an error while stopping",
    (S.STOPPING, S.CANCELLED): "withdrawn while stopping",
    (S.STOPPING, S.HELD): "stopped to be held",
    (S.STOPPING, S.KILLING): "it did not stop in time, or one of its nodes failed",
    (S.KILLING, S.WAITING): "its processes are gone: back to the last checkpoint",
    (S.KILLING, S.HELD): "its processes are gone",
    (S.KILLING, S.DONE): "finished before the kill reached it",
    (S.KILLING, S.FAILED): "its processes are gone",
    (S.KILLING, S.CANCELLED): "its processes are gone",
    (S.FAILED, S.WAITING): "tried again",
    (S.CANCELLED, S.WAITING): "tried again",
}

# The same, to look up quickly.
AFTER: dict[State | None, frozenset[State]] = {
    before: frozenset(after for b, after in TRANSITIONS if b is before) for before in (None, *State)
}

TERMINAL = frozenset({S.DONE, S.FAILED, S.CANCELLED})
WITH_PROCESSES = frozenset({S.RUNNING, S.STOPPING, S.KILLING})
