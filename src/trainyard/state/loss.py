"""What it costs to stop a job now: the work since its last checkpoint and its restart, in GPU-seconds."""

from __future__ import annotations

from math import fmod

from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


def lost_gpu_s(snapshot: Snapshot, record: Record) -> float:
    """GPU-seconds that a stop at this moment would cost a job that has GPUs."""
    return record.given * (checkpoint_age_s(record, snapshot.now_s) + snapshot.restart_cost(record.job))


def checkpoint_age_s(record: Record, now_s: float) -> float:
    """Seconds of work since the last checkpoint of a job that runs; 0 if it writes them all the time."""
    ran, every = now_s - record.run_since_s, record.job.checkpoint_s
    if ran <= 0 or not record.rate > 0:
        return 0.0
    if record.reported_s >= 0:  # it says itself what it saved
        saved = record.total - record.saved if record.length is None else record.length.saved
        return max(0.0, record.done_at(now_s) - saved) / record.rate
    return fmod(ran, every) if every > 0 else 0.0
