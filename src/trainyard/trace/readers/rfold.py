"""Philly as RFold carries it: all 111,549 jobs with a start and an end, but no users and no wall clock.

The run time is from the first start to the last end; ten jobs started and ended in the same second. The wall
clock is known all the same: every job of the copy with time stamps (philly-vc) is here, at the same second,
when the first arrival is put at 2017-08-14 23:27:00.
"""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, clock_s, four
from trainyard.trace.records import Collector, Trace, second_of_week

NAME = "rfold"
COLUMNS = ("#job id", "arrival time (sec)", "size", "duration (sec)")
FIRST_ARRIVAL = "2017-08-14 23:27:00"
PHILLY_JOBS = 111_549


def read(source: Source) -> Trace:
    """Read a trace in RFold's form."""
    rows = Collector(source.where, NAME)
    for job_id, arrival_s, gpus, duration_s in four(source, COLUMNS):
        rows.add(job_id, arrival_s, gpus, duration_s)
    whole = rows.report.read == PHILLY_JOBS
    return rows.trace(second_of_week(clock_s(FIRST_ARRIVAL)) if whole else None)
