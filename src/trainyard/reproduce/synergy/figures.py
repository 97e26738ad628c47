"""The pictures of Synergy's experiments, drawn from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.findings import Cell, Table
from trainyard.reproduce.synergy import theirs

GREY = "#888888"
BAND = "#EEF3F7"
OURS_STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 4}
THEIRS_STYLE: dict[str, Any] = {"linestyle": "", "marker": "s", "markersize": 6, "markerfacecolor": "none"}
LIMIT = 1.05  # of OPT's average completion time

Record = dict[str, Cell]


class Capacities(NamedTuple):
    """Jobs per hour, by (split, CPUs per GPU)."""

    proportional: float
    best: dict[tuple[str, float], float]


def draw(tables: Sequence[Table]) -> dict[str, bytes]:
    """Return file name -> PNG."""
    by_name = {table.name: table.records() for table in tables}
    limits = _capacities(by_name["capacity"])
    figures = {
        "jct_load.png": _jct_load(by_name["load"], limits),
        "gain_load.png": _gain_load(by_name["load"], limits),
        "gain_split.png": _gain_split(by_name["splits"], limits),
        "gain_where.png": _gain_where(by_name["ratios"], by_name["multi_gpu"], by_name["windows"]),
        "opt.png": _opt([*by_name["opt"], *by_name["deployment"]]),
        "decisions.png": _decisions(by_name["decisions"]),
    }
    return {name: png_bytes(figure) for name, figure in figures.items()}


def _capacities(rows: list[Record]) -> Capacities:
    best = {(str(r["mix"]), _number(r["CPUs/GPU"])): _number(r["best jobs/h"]) for r in rows}
    return Capacities(_number(rows[0]["prop jobs/h"]), best)


def _number(cell: Cell) -> float:
    """A cell as a number; of a range its middle, of nothing NaN."""
    if isinstance(cell, str):
        found = [float(text) for text in re.findall(r"\d+\.\d+", cell)]
        return sum(found) / len(found)
    return float("nan") if cell is None else float(cell)


def _distinct(rows: Iterable[Record], key: str) -> list[Cell]:
    return list(dict.fromkeys(row[key] for row in rows))


def _line(axes: Any, rows: Sequence[Record], x: str, y: str, colour: str, label: str = "") -> None:
    points = sorted((_number(row[x]), _number(row[y])) for row in rows)
    axes.plot(*zip(*points, strict=True), color=colour, label=label, **OURS_STYLE)


def _marks(axes: Any, rows: Sequence[Record], x: str, y: str, colour: str) -> None:
    known = [(_number(row[x]), _number(row[y])) for row in rows if row[y] is not None]
    if known:
        axes.plot(*zip(*known, strict=True), color=colour, **THEIRS_STYLE)


def _legend(figure: Any, axes: Any, columns: int = 5) -> None:
    axes.plot([], [], color=GREY, label="theirs (jobs 4000 to 4999)", **THEIRS_STYLE)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper left", ncols=columns, frameon=False, fontsize=9, labelcolor=INK,
    )  # fmt: skip


def _plain_ticks(axis: Any, ticks: Sequence[float]) -> None:
    """Numbers as people write them on a logarithmic axis."""
    low, high = axis.get_view_interval()
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(shown, [f"{tick:g}" for tick in shown])
    axis.set_ticks([], minor=True)


def _jct_load(rows: list[Record], limits: Capacities) -> Any:
    figure = new_figure(8, 6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axes, order in zip(panels, _distinct(rows, "order"), strict=True):
        own = [row for row in rows if row["order"] == order]
        for colour, ours, known, label in (
            (POLICY_LIGHT[1], "prop h", "their prop h", "proportional"),
            (POLICY_LIGHT[0], "tune h", "their tune h", "tune"),
        ):
            _line(axes, own, "jobs/h", ours, colour, label)
            if order != "FTF":  # theirs is another order
                _marks(axes, own, "jobs/h", known, colour)
        axes.set_yscale("log")
        labelled(axes, "jobs/h", "average JCT (h)", str(order))
        _band(axes, limits)
        axes.label_outer()
    _plain_ticks(panels[0].yaxis, (10, 15, 20, 30, 50, 100, 150))
    _legend(figure, panels[0])
    return figure


def _band(axes: Any, limits: Capacities) -> None:
    """Mark the loads that are too much for proportional shares and not for the best ones."""
    ends = limits.proportional, limits.best["20-70-10", 3.0]
    axes.axvspan(*ends, color=BAND, zorder=0, label="between the capacities")


def _gain_load(rows: list[Record], limits: Capacities) -> Any:
    figure = new_figure(8, 4.4)
    axes = figure.subplots()
    for order, colour in zip(_distinct(rows, "order"), POLICY_LIGHT, strict=False):
        own = [row for row in rows if row["order"] == order]
        _line(axes, own, "jobs/h", "gain", colour, str(order))
        if order != "FTF":
            _marks(axes, own, "jobs/h", "their gain", colour)
    labelled(axes, "jobs/h", "gain: average JCT, proportional / tune")
    axes.set_ylim(bottom=0)
    _band(axes, limits)
    axes.axhline(theirs.LARGEST, color=GREY, linewidth=1, linestyle="--")
    left = axes.get_xlim()[0]
    axes.annotate(
        f"  the paper's {theirs.LARGEST}x", (left, theirs.LARGEST), va="bottom", fontsize=8.5, color=INK
    )
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    _legend(figure, axes)
    return figure


def _gain_split(rows: list[Record], limits: Capacities) -> Any:
    orders = [
        o
        for o in _distinct(rows, "order")
        if len(_distinct([r for r in rows if r["order"] == o], "jobs/h")) > 2
    ]
    figure = new_figure(4.4 * max(len(orders), 1.4), 4.2)
    panels = figure.subplots(1, len(orders), squeeze=False)[0]
    for axes, order in zip(panels, orders, strict=True):
        for split, colour in zip(_distinct(rows, "mix"), POLICY_LIGHT, strict=False):
            own = [r for r in rows if r["order"] == order and r["mix"] == split]
            _line(axes, own, "jobs/h", "gain", colour, str(split))
            _marks(axes, own, "jobs/h", "their gain", colour)
            axes.axvline(limits.best[str(split), 3.0], color=colour, linewidth=1.2, linestyle=":")
        axes.axvline(limits.proportional, color=GREY, linewidth=1.2, linestyle=":")
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        labelled(axes, "jobs/h (dotted: capacity, grey: proportional)", "gain of tune", str(order))
        axes.set_ylim(bottom=0)
    _legend(figure, panels[0])
    return figure


def _gain_where(ratios: list[Record], multi_gpu: list[Record], windows: list[Record]) -> Any:
    figure = new_figure(11, 3.8)
    left, middle, right = figure.subplots(1, 3)
    for axes, rows, x in ((left, ratios, "CPUs/GPU"), (middle, multi_gpu, "of capacity")):
        for order, colour in zip(_distinct(rows, "order"), POLICY_LIGHT, strict=False):
            own = [row for row in rows if row["order"] == order]
            _line(axes, own, x, "gain", colour, str(order))
            _marks(axes, own, x, "their gain", colour)
        axes.set_xticks(sorted({_number(row[x]) for row in rows}))
    starts = [{**row, "first": float(str(row["jobs"]).split()[0]) / 1000} for row in windows]
    _line(right, starts, "first", "gain", POLICY_LIGHT[0])
    _marks(right, starts, "first", "their gain", POLICY_LIGHT[0])
    labelled(left, "CPUs per GPU", "gain of tune", "9 jobs/h, by server")
    labelled(middle, "load / proportional capacity", "", "Jobs of 1 to 8 GPUs")
    labelled(right, "first of 1,000 measured jobs (thousands)", "", "FIFO, 9 jobs/h, by jobs measured")
    for axes in (left, middle, right):
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        axes.set_ylim(bottom=0)
    _legend(figure, middle)
    return figure


def _opt_kind(row: Record) -> str:
    if "trace" in row:
        return f"{row['trace']} trace, {row['GPUs']} GPUs"
    sizes = "" if row["GPUs/job"] == "1" else ", 1 to 8 GPUs per job"
    cpus = f", {row['CPUs/GPU']:g} CPUs/GPU" if row["CPUs/GPU"] != 3.0 else ""
    return f"{row['mix']}, {row['jobs/h']:g} jobs/h, {row['GPUs']} GPUs{cpus}{sizes}"


def _opt(rows: list[Record]) -> Any:
    kinds = list(dict.fromkeys(map(_opt_kind, rows)))
    figure = new_figure(8, 1.2 + 0.28 * len(kinds))
    axes = figure.subplots()
    at = {kind: -i for i, kind in enumerate(kinds)}
    shapes: tuple[tuple[str, str, str, Callable[[Record], float]], ...] = (
        ("greedy", "x", POLICY_LIGHT[1], lambda r: _number(r["greedy"]) / _number(r["opt"])),
        ("tune", "o", POLICY_LIGHT[0], lambda r: _number(r["tune/opt"])),
    )
    for label, marker, colour, ratio in shapes:
        axes.scatter(
            [ratio(r) for r in rows],
            [at[_opt_kind(r)] for r in rows],
            s=24,
            marker=marker,
            color=colour,
            label=label,
        )
    labelled(axes, "average JCT relative to OPT (one mark per order)", "")
    axes.set_yticks([at[kind] for kind in kinds], kinds, fontsize=8)
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.axvline(LIMIT, color=GREY, linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.margins(x=0.04)
    _plain_ticks(axes.xaxis, (0.9, 1, LIMIT, 1.2, 1.5, 2, 3, 5))
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9, labelcolor=INK)
    return figure


def _decisions(rows: list[Record]) -> Any:
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    splits = _distinct(rows, "mix")
    for stage, colour in (("prop", POLICY_LIGHT[1]), ("tune", POLICY_LIGHT[0]), ("opt", POLICY_LIGHT[2])):
        for split, style in zip(splits, ("-", "--"), strict=False):
            own = sorted((_number(r["GPUs"]), _number(r[f"{stage} s"])) for r in rows if r["mix"] == split)
            axes.plot(
                *zip(*own, strict=True),
                color=colour,
                **{**OURS_STYLE, "linestyle": style},
                label=f"{stage}, {split}",
            )
        _marks(axes, rows, "GPUs", f"their {stage} s", colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    labelled(axes, "GPUs", "CPU seconds of one decision")
    _plain_ticks(axes.xaxis, sorted({_number(row["GPUs"]) for row in rows}))
    _legend(figure, axes, 4)
    return figure
