"""Doubling against "one more worker" in simulated workloads, by the shape of the jobs' speed."""

from __future__ import annotations

from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.ring.curves import CURVES
from trainyard.reproduce.ring.patterns import HOURS, TIMES
from trainyard.reproduce.ring.runs import DOUBLING, PLUS_ONE, Found, Run, average_h, restarts
from trainyard.reproduce.ring.scale import Scale
from trainyard.reproduce.ring.workload import GPUS, MODELS, Pattern, Workload


def _seeded(policy: str, curve: str, pattern: Pattern, scale: Scale) -> list[Run]:
    return [Run(policy, Workload(pattern, seed, curve, GPUS)) for seed in scale.seeds]


def runs(scale: Scale) -> list[Run]:
    """Every run that the table needs."""
    return [
        run
        for curve in CURVES
        for pattern in scale.levels
        for policy in (DOUBLING, PLUS_ONE)
        for run in _seeded(policy, curve, pattern, scale)
    ]


def tables(scale: Scale, found: Found) -> list[Table]:
    """All tables of this file."""
    rows: list[list[Cell]] = []
    for curve in CURVES:
        for pattern in scale.levels:
            own = [_seeded(policy, curve, pattern, scale) for policy in (DOUBLING, PLUS_ONE)]
            doubling, adding = (average_h(each, found) for each in own)
            moves = [restarts(each, found) / pattern.jobs for each in own]
            ratios = [found[b].average_h / found[a].average_h for a, b in zip(*own, strict=True)]
            ends = min(ratios), max(ratios)
            rows.append([curve, pattern.name, doubling, adding, *moves, adding / doubling, *ends])
    columns = [
        Heading("curves"),
        Heading("contention"),
        Heading("doubling h", HOURS),
        Heading("+1 h", HOURS),
        Heading("stops", "{:.1f}"),
        Heading("+1 stops", "{:.1f}"),
        Heading("ratio", TIMES),
        Heading("least", TIMES),
        Heading("most", TIMES),
    ]
    note = (
        f"Average JCT, {len(scale.seeds)} seeds, both with hysteresis. Stops: restarts per job. Ratio: of +1 "
        f"to doubling; least and most of all seeds. {MODELS} curves in a workload, up to {GPUS} GPUs per "
        "job; a job takes as long as the paper's on one GPU."
    )
    return [Table("growth", "Doubling against one more worker, simulated", columns, rows, note)]
