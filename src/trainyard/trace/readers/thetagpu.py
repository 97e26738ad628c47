"""ThetaGPU (Argonne, 24 DGX A100): the job log of 2023 as Lumos carries it.

`gpu_num` equals `node_num` in every row, so it is a number of allocation units (a GPU or a node) and not of
GPUs. Jobs submitted before the year of the log began are left out: they are the few that happened to be still
there, not the arrivals of their time (two of them came 100 days before all others).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import median

from trainyard.trace.readers.cells import Source, table
from trainyard.trace.records import Collector, Trace

NAME = "thetagpu"
COLUMNS = (
    "job",
    "user",
    "project",
    "gpu_num",
    "node_num",
    "submit_time",
    "run_time",
    "wall_time",
    "new_status",
)
ARGONNE_S = -6 * 3600.0  # US Central, winter: the year begins in it


def read(source: Source) -> Trace:
    """Read a ThetaGPU job log."""
    rows, cells = Collector(source.where, NAME), list(table(source, COLUMNS))
    begin = _year_begins([row.number("submit_time") for row in cells]) if cells else 0.0
    for row in cells:
        submitted = row.number("submit_time") + ARGONNE_S
        if submitted < begin:
            rows.drop("submitted before the year of the log")
            continue
        known = {"tenant": f"user-{row.whole('user')}", "status": row.text("new_status")}
        rows.add(row.text("job"), submitted, row.whole("gpu_num"), row.number("run_time"), **known)
    return rows.trace(on_epoch=True)


def _year_begins(epochs: list[float]) -> float:
    """Return the start of the year in which most jobs came, on Argonne's clock."""
    middle = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=median(epochs) + ARGONNE_S)
    return datetime(middle.year, 1, 1, tzinfo=UTC).timestamp()
