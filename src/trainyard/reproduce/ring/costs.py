"""What waiting for the next round and restarting cost, and what hysteresis is worth."""

from __future__ import annotations

from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.ring import theirs
from trainyard.reproduce.ring.patterns import HOURS, in_one_cell
from trainyard.reproduce.ring.runs import DOUBLING, DOUBLING_ALWAYS, Found, Run, average_h, restarts
from trainyard.reproduce.ring.scale import Scale
from trainyard.reproduce.ring.workload import Pattern, Workload

ROUND_SEEDS = 6
RESTARTS_S = (0.0, 10.0, 60.0, 300.0)
WAYS = (("off", DOUBLING_ALWAYS), ("on", DOUBLING))


def _by_round(round_s: float | None, restart_s: float, level: Pattern, scale: Scale) -> list[Run]:
    return [
        Run(DOUBLING_ALWAYS, Workload(level, seed), round_s=round_s, restart_s=restart_s)
        for seed in _few(scale)
    ]


def _few(scale: Scale) -> range:
    """As many seeds as the independent simulation has."""
    return scale.seeds[:ROUND_SEEDS]


def _by_restart(policy: str, restart_s: float, level: Pattern, scale: Scale) -> list[Run]:
    return [Run(policy, Workload(level, seed), restart_s=restart_s) for seed in scale.seeds]


def runs(scale: Scale) -> list[Run]:
    """Every run that the tables need."""
    rounds = [
        run
        for round_s, restart_s in theirs.INDEPENDENT_ROUNDS_H
        for level in scale.levels
        for run in _by_round(round_s, restart_s, level, scale)
    ]
    return rounds + [
        run
        for _, policy in WAYS
        for restart_s in RESTARTS_S
        for level in scale.levels
        for run in _by_restart(policy, restart_s, level, scale)
    ]


def tables(scale: Scale, found: Found) -> list[Table]:
    """All tables of this file."""
    return [_rounds(scale, found), _restarts(scale, found)]


def _rounds(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for (round_s, restart_s), independent in theirs.INDEPENDENT_ROUNDS_H.items():
        ours = [average_h(_by_round(round_s, restart_s, level, scale), found) for level in scale.levels]
        when = "at every event" if round_s is None else f"every {round_s / 60:g} min"
        rows.append([when, restart_s, *ours, in_one_cell(independent)])
    columns = [
        Heading("decisions"),
        Heading("restart s", "{:g}"),
        *(Heading(level.name, HOURS) for level in scale.levels),
        Heading("independent"),
    ]
    note = (
        "Average JCT in hours of doubling without hysteresis; a new job waits for the next round. "
        f"Independent: a small simulation, {ROUND_SEEDS} seeds; ours: {len(_few(scale))}."
    )
    return Table("rounds", "How often decisions are made", columns, rows, note)


def _restarts(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for restart_s in RESTARTS_S:
        for way, policy in WAYS:
            own = [_by_restart(policy, restart_s, level, scale) for level in scale.levels]
            hours = [average_h(each, found) for each in own]
            count = [
                restarts(each, found) / level.jobs for each, level in zip(own, scale.levels, strict=True)
            ]
            rows.append([restart_s, way, *hours, *count])
    columns = [
        Heading("restart s", "{:g}"),
        Heading("hysteresis"),
        *(Heading(level.name, "{:.3f}") for level in scale.levels),
        *(Heading(f"restarts {level.name}", HOURS) for level in scale.levels),
    ]
    note = "Average JCT in hours, and restarts per job; decisions at every event."
    return Table("restarts", "What a restart costs, and what hysteresis saves", columns, rows, note)
