"""The pictures of the ring experiments, drawn from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.findings import Cell, Table
from trainyard.reproduce.ring import theirs
from trainyard.reproduce.ring.curves import CURVES, draw_curve
from trainyard.reproduce.ring.patterns import FIXED, HALVED
from trainyard.reproduce.ring.workload import LEVELS

GREY = "#888888"
LINE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 4}
REMEMBERED: dict[str, Any] = {
    "label": "remembered of the paper",
    "marker": "s",
    "s": 34,
    "facecolors": "none",
    "edgecolors": "black",
}
INDEPENDENT: dict[str, Any] = {"label": "independent simulation", "marker": "x", "s": 28, "color": "black"}
FIXED_NAMES = {fixed.name for fixed in FIXED}
SHOWN_WORKERS = 20
SHOWN_SEED = 10  # of curves that show well what is typical of each kind

Record = dict[str, Cell]


def draw(tables: Sequence[Table]) -> dict[str, bytes]:
    """Return file name -> PNG."""
    rows = {table.name: table.records() for table in tables}
    figures = {
        "ring-contention.png": _contention(rows["contention"]),
        "ring-patterns.png": _patterns(rows["patterns"]),
        "ring-costs.png": _costs(rows["rounds"], rows["restarts"]),
        "ring-curves.png": _curves(rows["optimum"], rows["growth"]),
    }
    return {name: png_bytes(figure) for name, figure in figures.items()}


def _numbers(rows: Sequence[Record], name: str) -> list[float]:
    """A column as numbers; of nothing NaN."""
    return [float("nan") if row[name] is None else float(row[name] or 0) for row in rows]


def _legend(figure: Any, axes: Any) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=6, frameon=False, fontsize=8.5, labelcolor=INK)


def _names_down(axes: Any, names: Sequence[Cell]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.invert_yaxis()


def _contention(rows: Sequence[Record]) -> Any:
    """Bars of ours, marks of what others gave."""
    figure = new_figure(8, 3.4)
    panels = figure.subplots(1, 3, sharey=True)
    names = [str(row["strategy"]) for row in rows]
    colours = [POLICY_LIGHT[7] if name in FIXED_NAMES else POLICY_LIGHT[0] for name in names]
    for i, (axes, level) in enumerate(zip(panels, LEVELS, strict=True)):
        axes.barh(range(len(rows)), _numbers(rows, level.name), height=0.6, color=colours)
        for known, style in ((theirs.AVERAGE_H, REMEMBERED), (theirs.INDEPENDENT_H, INDEPENDENT)):
            told = [(known[name][i], k) for k, name in enumerate(names) if name in known]
            axes.scatter(*zip(*told, strict=True), **style)
        labelled(axes, "average JCT (h)", title=level.name)
        axes.margins(x=0.05)
    _names_down(panels[0], names)
    _legend(figure, panels[0])
    return figure


def _patterns(rows: Sequence[Record]) -> Any:
    """How many times longer jobs take with each fixed size."""
    figure = new_figure(8, 3.8)
    axes = figure.subplots()
    doubling = np.array(_numbers(rows, "doubling"))
    for fixed, colour, marker in zip(FIXED, POLICY_LIGHT, "osD^", strict=False):
        ratio = np.array(_numbers(rows, fixed.name)) / doubling
        axes.scatter(ratio, range(len(rows)), s=28, color=colour, marker=marker, label=f"fixed {fixed.name}")
    labelled(axes, "average JCT with a fixed size / with doubling")
    axes.margins(x=0.03)
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.axvline(HALVED, color=GREY, linewidth=1, linestyle="--", label="halved")
    _names_down(axes, [row["pattern"] for row in rows])
    _legend(figure, axes)
    return figure


def _costs(rounds: Sequence[Record], restarts: Sequence[Record]) -> Any:
    """Rounds on the left, restart costs on the right, both relative to what costs nothing."""
    figure = new_figure(8, 3.4)
    left, right = figure.subplots(1, 2)
    names = [f"{row['decisions']},\nrestart {row['restart s']:g} s" for row in rounds]
    at = np.arange(len(rounds))
    for i, (level, colour) in enumerate(zip(LEVELS, POLICY_LIGHT, strict=False)):
        hours = np.array(_numbers(rounds, level.name))
        left.barh(at + 0.25 * (i - 1), hours / hours[0], height=0.22, color=colour, label=level.name)
        for way, dash in (("off", "--"), ("on", "-")):
            own = [row for row in restarts if row["hysteresis"] == way]
            ratio = np.array(_numbers(own, level.name)) / _numbers(own, level.name)[0]
            right.plot(_numbers(own, "restart s"), ratio, color=colour, **LINE, linestyle=dash)
    right.plot([], [], color=GREY, linestyle="-", label="hysteresis on")
    right.plot([], [], color=GREY, linestyle="--", label="off")
    labelled(left, "average JCT / at every event", title="When decisions are made")
    _names_down(left, names)
    labelled(right, "seconds of a restart", "average JCT / restarts free", "What restarts cost")
    handles = [axes.get_legend_handles_labels() for axes in (left, right)]
    shown = handles[0][0] + handles[1][0], handles[0][1] + handles[1][1]
    figure.legend(*shown, loc="outside upper left", ncols=5, frameon=False, fontsize=8.5, labelcolor=INK)
    return figure


def _curves(optimum: Sequence[Record], growth: Sequence[Record]) -> Any:
    """Typical curves, single decisions beside the optimum, and simulated workloads."""
    figure = new_figure(11, 3.4)
    left, middle, right = figure.subplots(1, 3)
    workers = np.arange(1, SHOWN_WORKERS + 1)
    for kind, colour in zip(CURVES, POLICY_LIGHT[2:], strict=False):
        speed = draw_curve(kind, np.random.default_rng(SHOWN_SEED), SHOWN_WORKERS)
        left.plot(workers, speed, color=colour, linewidth=1.5, marker=".", label=kind)
    labelled(left, "workers", "speed, one worker = 1", "A curve of each kind")
    left.legend(frameon=False, fontsize=8, labelcolor=INK)
    at = np.arange(len(optimum))
    for shift, colour, name in ((-0.18, POLICY_LIGHT[0], "doubling"), (0.18, POLICY_LIGHT[1], "+1")):
        over = _numbers(optimum, f"{name} mean")
        middle.barh(at + shift, over, height=0.34, color=colour, label=name)
    labelled(middle, "sum of times / optimum (mean)", title="Single decisions")
    middle.set_xlim(left=1)
    middle.legend(frameon=False, fontsize=8, labelcolor=INK)
    _names_down(middle, [row["curves"] for row in optimum])
    ratio, least, most = (np.array(_numbers(growth, name)) for name in ("ratio", "least", "most"))
    at = np.arange(len(growth))
    right.errorbar(ratio, at, xerr=[ratio - least, most - ratio], fmt="o", color=POLICY_LIGHT[0], capsize=3)
    right.axvline(1.0, color=GREY, linewidth=1)
    labelled(right, "average JCT, +1 / doubling (all seeds)", title="Simulated")
    right.set_xscale("log")
    right.set_xticks([1, 2, 4], ["1", "2", "4"])
    right.set_xticks([], minor=True)
    _names_down(right, [f"{row['curves']}, {row['contention']}" for row in growth])
    return figure
