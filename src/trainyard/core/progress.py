"""What a job has done so far: by its rate, up to its last checkpoint, and what a failure takes from it."""

from __future__ import annotations

from math import floor

from trainyard.core.record import Record
from trainyard.core.states import State
from trainyard.state.jobs import Column, JobTable
from trainyard.state.observed import Observed

REMAINING, RATE, SINCE = Column.REMAINING, Column.RATE, Column.SINCE
RUNNING = State.RUNNING


def settle(table: JobTable, observed: Observed, record: Record, now: float) -> float:
    """Count the work done so far; return the samples left."""
    cells, row = table.cells, table.row_of[record.job.job_id]
    since = cells[SINCE][row]
    left = cells[REMAINING][row]
    if now > since:
        done = cells[RATE][row] * (now - since)
        left = cells[REMAINING][row] = max(0.0, left - done)
        cells[SINCE][row] = now
        if record.job.elastic and record.occupies is not None:
            occupied = record.occupies
            observed.ran(record.job.job_id, (occupied.gpus, occupied.servers), now - since, done)
    return left


def note_checkpoint(table: JobTable, record: Record, now: float) -> None:
    """Remember the samples left at the last checkpoint of this run."""
    cells, row = table.cells, table.row_of[record.job.job_id]
    every, began = record.job.checkpoint_s, record.run_since_s
    if now <= began:
        return
    at = began + floor((now - began) / every) * every if every > 0 else now
    since = cells[SINCE][row]
    if at >= since:
        record.saved = max(0.0, cells[REMAINING][row] - cells[RATE][row] * (at - since))


def roll_back(table: JobTable, record: Record, now: float) -> None:
    """Lose the work since the last checkpoint; a job that was stopping has saved its work already."""
    cells, row = table.cells, table.row_of[record.job.job_id]
    if record.state is RUNNING:
        note_checkpoint(table, record, now)
        cells[REMAINING][row] = record.saved
    cells[RATE][row] = 0.0
    cells[SINCE][row] = now


def lr_factor(record: Record, gpus: int) -> float:
    """Return how much the learning rate has to grow with the batch."""
    profile = record.job.profile
    if profile is not None and profile.scaling == "strong":
        return 1.0  # the batch stays as it is
    return gpus / record.trained_with
