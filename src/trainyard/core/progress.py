"""What a job has done so far: by its rate, up to its last checkpoint, and what a failure takes from it."""

from __future__ import annotations

from math import floor

from trainyard.state.lifecycle import State
from trainyard.state.record import Record

RUNNING, STOPPING = State.RUNNING, State.STOPPING


def settle(record: Record, now: float) -> float:
    """Count the work done so far; return the samples left."""
    since = record.since
    if now > since:
        done = record.rate * (now - since)
        record.remaining = max(0.0, record.remaining - done)
        record.since = now
        if record.length is not None:
            record.length.done += done
        if record.job.elastic and record.occupies is not None and record.reported_s < 0:
            occupied = record.occupies
            record.see().ran_at((occupied.gpus, occupied.servers), now - since, done)
    return record.remaining


def note_checkpoint(record: Record, now: float) -> None:
    """Remember the samples left at the last checkpoint of this run."""
    every, began = record.job.checkpoint_s, record.run_since_s
    if now <= began or record.reported_s >= 0:  # then it says itself what it saved
        return
    at = began + floor((now - began) / every) * every if every > 0 else now
    if at >= record.since:
        record.saved = max(0.0, record.remaining - record.rate * (at - record.since))
        if record.length is not None:
            record.length.saved = record.length.done + record.rate * (at - record.since)


def roll_back(record: Record, now: float) -> None:
    """Lose the work since the last checkpoint.

    A job of a trace that was stopping has saved its work already; of a real one (with terms) nobody knows.
    """
    if record.state is RUNNING:
        note_checkpoint(record, now)
    if record.state is RUNNING or (record.state is STOPPING and record.job.terms is not None):
        lose(record)
    record.rate = 0.0
    record.since = now


def lose(record: Record) -> None:
    """Go back to the last checkpoint."""
    record.remaining = record.saved
    if record.length is not None:
        record.length.done = record.length.saved


def keep(record: Record) -> None:
    """All that was done is saved."""
    record.saved = record.remaining
    if record.length is not None:
        record.length.saved = record.length.done


def lr_factor(record: Record, gpus: int) -> float:
    """Return how much the learning rate has to grow with the batch."""
    profile = record.job.profile
    if profile is not None and profile.scaling == "strong":
        return 1.0  # the batch stays as it is
    return gpus / (record.trained_with or gpus)
