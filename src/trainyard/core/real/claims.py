"""What a job says of its progress, and what nobody believes: it could say so only to go first.

How much there is to do is told once. A speed is believed unless it is far above all that were measured with
the same GPUs, CPUs and memory; the first one is often that of a slow beginning, so there must be two.
"""

from __future__ import annotations

from dataclasses import replace

from trainyard.core.events import ProgressReported
from trainyard.state.record import Record

MANY = 3.0  # times as fast as ever before: more is not believed
ENOUGH = 2  # speeds that have to be known
LEAST_S = 1.0  # a shorter time tells no speed
IGNORED = "so that is ignored"


def doubts(record: Record, now: float, done: float) -> str:
    """Say why nobody believes that a job has done so many samples; nothing if that may be."""
    trouble, seconds = record.trouble, max(now - record.since, LEAST_S)
    if trouble is None or not _since_report(record):
        return ""
    if record.start >= 0 and trouble.speeds_run != record.start:
        return ""  # it runs with something else
    more, speeds = done - record.done_at(record.since), trouble.speeds
    if len(speeds) < ENOUGH or more <= MANY * max(speeds) * seconds:
        return ""
    return (
        f"job {record.job_id} says that it did {more:.0f} samples in {seconds:.0f} s; "
        f"it was never faster than {max(speeds):.3g} a second, {IGNORED}"
    )


def note_speed(record: Record, now: float, done: float) -> None:
    """Remember how fast a job was since its last report, which is `done` samples now."""
    seconds, more = now - record.since, done - record.done_at(record.since)
    if record.job.terms is None or record.start < 0 or seconds < LEAST_S or more <= 0:
        return
    if not _since_report(record):
        return
    trouble = record.troubles()
    if trouble.speeds_run != record.start:
        trouble.speeds_run, trouble.speeds = record.start, []
    trouble.speeds = sorted([*trouble.speeds, more / seconds])[-ENOUGH:]


def _since_report(record: Record) -> bool:
    """Whether what was done at `since` is known, and not only believed."""
    return record.since in (record.run_since_s, record.reported_s)


def believed(record: Record, said: ProgressReported) -> ProgressReported:
    """Return a report without what is not believed of it: another total than before, too high a speed."""
    total, rate, trouble = said.samples_total, said.samples_per_s, record.trouble
    if record.job.terms is None:
        return said
    if not may_tell_total(record):
        total = None
    if rate is not None and trouble is not None and trouble.speeds_run == record.start:
        rate = rate if len(trouble.speeds) < ENOUGH or rate <= MANY * max(trouble.speeds) else None
    return replace(said, samples_total=total, samples_per_s=rate)


def may_tell_total(record: Record) -> bool:
    """Whether a job may still say how much it has to do: nobody did before."""
    return record.job.samples is None and (record.length is None or not record.length.known)
