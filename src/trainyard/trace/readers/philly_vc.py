"""Philly as Sia and AdaptDL carry it: wall clock, run time, GPUs and virtual cluster of 82,247 jobs.

The file is not in order of time and ends with an empty line.
"""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, table
from trainyard.trace.records import Collector, Trace

NAME = "philly-vc"
COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def read(source: Source) -> Trace:
    """Read Philly with virtual clusters; jobs have no id of their own, so they are numbered."""
    rows = Collector(source.where, NAME)
    for number, row in enumerate(table(source, COLUMNS)):
        submitted = row.time("timestamp")
        if submitted is None:
            rows.drop("no time of submission")
            continue
        gpus, duration_s = row.whole("num_gpus"), row.number("duration")
        rows.add(f"philly-{number}", submitted, gpus, duration_s, tenant=row.text("cluster"))
    return rows.trace(on_epoch=True)
