"""What jobs say of themselves: how far they are, how fast, at which loss, what they saved.

Reports set the samples done and the rate of the job. Measured speeds also correct what is believed of later
starts: of all jobs of its kind, if it has a profile, else of this job alone, whose samples may be anything.
Once a job has reported, the model adds nothing to what was seen of it, and no checkpoints.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from trainyard.core.lengths import set_total
from trainyard.model.kind import kind_name
from trainyard.state.corrections import smoothed
from trainyard.state.lifecycle import State

if TYPE_CHECKING:
    from trainyard.core.events import CheckpointWritten, ProgressReported
    from trainyard.core.yard import Yard
    from trainyard.state.record import Record

RUNNING = State.RUNNING
MOST = 1e9  # times as fast or slow as the model says: more is no speed
LEAST_S = 1.0  # a shorter time tells no speed


def take_report(yard: Yard, record: Record, report: ProgressReported) -> None:
    """A job says how far it is; what it said later counts more."""
    now, done = report.time_s, report.samples_done
    if now < record.reported_s or not 0 <= done < inf:
        return
    if report.samples_total is not None and 0 < report.samples_total < inf:
        set_total(record, report.samples_total)
    rate = _measured(record, now, done)
    yard.lengths.set_done(record, done)
    record.since = record.reported_s = max(record.since, now)
    if report.samples_per_s is not None and 0 < report.samples_per_s < inf:
        rate = report.samples_per_s
    if record.state is RUNNING and rate > 0:
        record.rate = rate
        _correct(yard, record, rate)
    yard.lengths.watch(record)
    yard.told(record)
    if report.loss is not None:
        record.see().reported(done, report.loss)


def take_checkpoint(yard: Yard, record: Record, written: CheckpointWritten) -> None:
    """A job has saved so much: a failure takes no more than what came after."""
    now, samples_done = written.time_s, written.samples_done
    if not 0 <= samples_done < inf:
        return
    if record.done_at(now) < samples_done:
        yard.lengths.set_done(record, samples_done)
        record.since = max(record.since, now)
        yard.lengths.watch(record)
    record.reported_s = max(record.reported_s, 0.0)
    record.saved = max(0.0, record.total - samples_done)
    if record.length is not None:
        record.length.saved = samples_done
    yard.told(record)


def _measured(record: Record, now: float, samples_done: float) -> float:
    """Samples/s since the last report, or since the run began; 0 if that cannot be told."""
    since, held = record.since, record.occupies
    seconds, done = now - since, samples_done - record.done_at(since)
    if record.state is not RUNNING or held is None or seconds <= 0 or done <= 0:
        return 0.0
    if since not in (record.run_since_s, record.reported_s):  # what was done by then was only believed
        return 0.0
    if record.job.elastic:
        record.see().ran_at((held.gpus, held.servers), seconds, done)
    return done / seconds if seconds >= LEAST_S else 0.0


def _correct(yard: Yard, record: Record, rate: float) -> None:
    """Let a measured speed tell of later starts."""
    job, held = record.job, record.occupies
    assert held is not None
    ratio = min(max(rate / yard.model.rate(job, held), 1 / MOST), MOST)
    if job.profile is None:
        known = record.pace != 1.0
        record.pace = smoothed(record.pace, ratio) if known else ratio
        record.reference_rate = yard.model.reference_rate(job) * record.pace
    elif yard.corrections.learn(kind_name(job.kind), ratio):
        yard.believe_corrections(yard.corrections)
