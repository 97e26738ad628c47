"""Tiresias (NSDI '19): the trace of its testbed. The run time is given, so the model names are not needed."""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, table
from trainyard.trace.records import Collector, Trace

NAME = "tiresias"
COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration")


def read(source: Source) -> Trace:
    """Read a trace in the form of Tiresias' simulator."""
    rows = Collector(source.where, NAME)
    for row in table(source, COLUMNS):
        rows.add(row.text("job_id"), row.number("submit_time"), row.whole("num_gpu"), row.number("duration"))
    return rows.trace()
