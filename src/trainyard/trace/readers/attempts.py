"""Philly as Lumos carries it: one row for each scheduling attempt, so that retries are jobs of their own.

Every attempt of a job has the job's time of submission, and nothing says which rows are one job. The wall
clock was converted as if it were that of the US East coast, which adds an hour at the end of summer time on
2017-11-05, both to later submissions and to attempts that ran through it: both are taken back here.
"""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, table
from trainyard.trace.records import Collector, Trace

NAME = "philly-attempts"
COLUMNS = ("run_time", "wait_time", "submit_time", "gpu_num")
SUMMER_TIME_ENDS = 1_509_861_600  # 2017-11-05 06:00 UTC
HOUR_S = 3600.0


def read(source: Source) -> Trace:
    """Read the attempts of the Philly jobs."""
    rows = Collector(source.where, NAME)
    for number, row in enumerate(table(source, COLUMNS)):
        epoch, duration_s = row.number("submit_time"), row.number("run_time")
        start = epoch + row.number("wait_time")
        if start < SUMMER_TIME_ENDS <= start + duration_s and duration_s > HOUR_S:
            duration_s -= HOUR_S
            rows.change("an hour taken off an attempt that ran through the end of summer time")
        rows.add(f"attempt-{number}", _wall_clock(epoch), row.whole("gpu_num"), duration_s)
    return rows.trace(on_epoch=True)


def _wall_clock(epoch: float) -> float:
    return epoch - (4 if epoch < SUMMER_TIME_ENDS else 5) * HOUR_S
