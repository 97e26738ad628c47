"""The same questions for what people train today: elastic all-reduce jobs on a small Philly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainyard.learn.settings.ring_jobs import RING_SETTINGS
from trainyard.reproduce.dl2.figures import draw_allreduce
from trainyard.reproduce.dl2.runs import Found, Group, Run, results, rows, runs
from trainyard.reproduce.findings import Table

POLICIES = (
    "fifo",
    "srtf",
    "drf",
    "optimus",
    "doubling",
    "lookahead",
    "srtf+lookahead",
    "steepest",
    "dl2(weights=philly)",
)
AGAINST = ("drf", "optimus")
LOADS = (0.75, 1.5, 3.0)
FULL_TRACES, QUICK_TRACES = {"ring16": 10, "ring64": 3}, {"ring16": 1}


def _groups(quick: bool) -> list[Group]:
    traces, loads = (QUICK_TRACES, LOADS[1:2]) if quick else (FULL_TRACES, LOADS)
    return [
        Group((name, load), replace(RING_SETTINGS[name], load=load), count)
        for name, count in traces.items()
        for load in loads
    ]


def tasks(quick: bool) -> list[Run]:
    """Every run, the longest first."""
    return runs(_groups(quick), POLICIES)


def tables(quick: bool, found: Found) -> list[Table]:
    """One table of all settings and loads."""
    cells = [row for group in _groups(quick) for row in rows(group, POLICIES, AGAINST, found)]
    note = (
        "16 and 64 nodes of 8 V100s, jobs of the zoo's models with Philly's arrivals, requests and run times "
        "up to 6 h, each from one GPU to eight times its request; slots of 600 s, a resize costs 10 s. Load: "
        "work that comes, by what all GPUs do. fifo and srtf give every job what it asked for."
    )
    return [results("dl2-allreduce", "All-reduce jobs like Philly's", ["setting", "load"], cells, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Draw completion times by load."""
    return draw_allreduce(tables[0], POLICIES)
