"""The four columns to which Helios Venus and a sample of Alibaba PAI were cut by one carrier."""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, four
from trainyard.trace.records import Collector

COLUMNS = ("job_id", "arrival_s", "service_sec", "gpu_count")
CLAMP_S = 172_800.0


def read_short(source: Source, format: str) -> Collector:
    """Read the rows; those at the clamp stay there and are counted."""
    rows = Collector(source.where, format)
    clamped = 0
    for job_id, arrival_s, gpus, duration_s in four(source, (*COLUMNS[:2], "gpu_count", "service_sec")):
        clamped += duration_s == CLAMP_S
        rows.add(job_id, arrival_s, gpus, duration_s)
    if clamped:
        rows.report.changed[f"run time clamped at {CLAMP_S:,.0f} s before it came here"] = clamped
    return rows
