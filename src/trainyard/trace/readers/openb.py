"""Alibaba's openb pods (cluster-trace-gpu-v2023, ATC '23): services and tasks that may share a GPU.

A pod lives from its creation to its deletion, also one that was never scheduled (`pod_phase` Pending, 12 %).
A pod that asks for a share of a GPU (`gpu_milli` below 1000) gets a whole one, since jobs have whole GPUs.
"""

from __future__ import annotations

from trainyard.trace.readers.cells import Source, table
from trainyard.trace.records import Collector, Trace

NAME = "openb"
COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "pod_phase",
    "creation_time",
    "deletion_time",
)


def read(source: Source) -> Trace:
    """Read a list of pods."""
    rows = Collector(source.where, NAME)
    for row in table(source, COLUMNS):
        gpus, created = row.whole("num_gpu"), row.number("creation_time")
        if gpus and row.number("gpu_milli") < 1000:
            rows.change("share of a GPU rounded up to a whole one")
        rows.add(
            row.text("name"),
            created,
            gpus,
            row.number("deletion_time") - created,
            cpus=row.number("cpu_milli") / 1000 or None,
            memory_gb=row.number("memory_mib") / 1024 or None,
            gpu_type=_only_type(row.text("gpu_spec")),
            status=row.text("pod_phase"),
        )
    return rows.trace()


def _only_type(spec: str) -> str:
    """Return the type of a pod that takes only one; a choice (`V100M16|V100M32`) cannot be said of a job."""
    return "" if "|" in spec else spec
