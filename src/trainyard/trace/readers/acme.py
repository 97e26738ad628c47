"""Acme (Shanghai AI Laboratory, NSDI '24): `trace_seren.csv` and `trace_kalos.csv`.

The run time is end - start. The column `duration` is that in Seren, but in Kalos it also holds the time in
the queue (in the publishers' own example: submitted 11:00:58, started 11:01:08, ended 11:01:16, duration 18).
"""

from __future__ import annotations

from trainyard.trace.readers.cells import Row, Source, table
from trainyard.trace.records import Collector, Trace

NAME = "acme"
COLUMNS = ("job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time", "duration")


def read(source: Source) -> Trace:
    """Read an Acme job trace."""
    rows = Collector(source.where, NAME)
    for row in table(source, COLUMNS):
        _add(rows, row)
    return rows.trace(on_epoch=True)


def _add(rows: Collector, row: Row) -> None:
    submitted, start, end = (row.time(f"{what}_time") for what in ("submit", "start", "end"))
    if submitted is None:
        return rows.drop("no time of submission")
    if start is None or end is None:
        return rows.drop("no start or no end")
    gpus = row.whole("gpu_num", 0)
    if gpus and row.number("duration", end - start) > end - start:
        rows.change("time in the queue taken out of the run time")
    known = {"tenant": row.text("user"), "status": row.text("state")}
    return rows.add(row.text("job_id"), submitted, gpus, end - start, **known)
