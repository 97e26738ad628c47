"""The pictures of the DL2 experiments, drawn from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.dl2.theirs import BOUND
from trainyard.reproduce.findings import Cell, Table

STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 4}
Rows = list[dict[str, Cell]]


def draw_baselines(table: Table) -> dict[str, bytes]:
    """Average JCT over the bound, a group of bars for each setting; the worst go out of the picture."""
    measured: Rows = [row for row in table.records() if row["avg JCT"] is not None]
    settings = _values(measured, "setting")
    rules = [rule for rule in _values(measured, "rule") if rule != BOUND]
    figure = new_figure(9, 3.6)
    axes = figure.subplots()
    width = 0.8 / len(rules)
    for i, rule in enumerate(rules):
        own = [row for row in measured if row["rule"] == rule]
        at = [settings.index(row["setting"]) + (i - (len(rules) - 1) / 2) * width for row in own]
        colour, hatch = POLICY_LIGHT[i % len(POLICY_LIGHT)], "//" * (i // len(POLICY_LIGHT))
        heights = [1 / float(row["bound / JCT"] or 1.0) for row in own]
        axes.bar(at, heights, width, label=rule, color=colour, hatch=hatch, edgecolor="white", linewidth=0.3)
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0.0, 3.0)
    axes.set_xticks(range(len(settings)), [str(name) for name in settings])
    labelled(axes, "", "average JCT / bound")
    _legend(figure, axes, 5)
    return {"dl2-baselines.png": png_bytes(figure)}


def draw_sweeps(table: Table, rules: Sequence[str]) -> dict[str, bytes]:
    """Average JCT over the bound by what varies."""
    records: Rows = table.records()
    sweeps = _values(records, "varied")
    figure = new_figure(9, 3.2)
    panels = figure.subplots(1, len(sweeps))
    for axes, sweep in zip(panels, sweeps, strict=True):
        _lines(axes, [row for row in records if row["varied"] == sweep], "value", rules)
        labelled(axes, str(sweep), "average JCT / bound")
    _legend(figure, panels[0], 5)
    return {"dl2-sweeps.png": png_bytes(figure)}


def draw_allreduce(table: Table, policies: Sequence[str]) -> dict[str, bytes]:
    """Average JCT over the bound by load, for each size of the cluster."""
    records: Rows = table.records()
    settings = _values(records, "setting")
    figure = new_figure(9, 3.4)
    panels = figure.subplots(1, len(settings), squeeze=False)[0]
    for axes, name in zip(panels, settings, strict=True):
        _lines(axes, [row for row in records if row["setting"] == name], "load", policies)
        labelled(axes, "load", "average JCT / bound", str(name))
    _legend(figure, panels[0], 5)
    return {"dl2-allreduce.png": png_bytes(figure)}


def draw_learning(table: Table) -> dict[str, bytes]:
    """Agreement with the teacher, then JCT on validation traces: the mean over seeds, and all of them."""
    records: Rows = table.records()
    figure = new_figure(9, 3.2)
    panels = figure.subplots(1, 2)
    main = [row for row in records if row["training"] == "main"]
    _band(panels[0], [row for row in main if row["part"] == "warm-up"], "main")
    labelled(panels[0], "decisions imitated", "agreement with the teacher")
    _band(panels[1], [row for row in main if row["part"] == "rl"], "main")
    labelled(panels[1], "iterations of reinforcement learning", "average JCT, validation (slots)")
    return {"dl2-learning.png": png_bytes(figure), **_draw_variants(records)}


def _draw_variants(records: Rows) -> dict[str, bytes]:
    """JCT on validation traces over iterations, a line for each variant."""
    figure = new_figure(9, 4.2)
    axes = figure.subplots()
    names = [name for name in _values(records, "training") if name != "main"]
    for i, name in enumerate(names):
        own = [row for row in records if row["training"] == name and row["part"] == "rl"]
        _band(axes, own, str(name), i)
    labelled(axes, "iterations of reinforcement learning", "average JCT, validation (slots)")
    _legend(figure, axes, 3)
    return {"dl2-ingredients.png": png_bytes(figure)}


def _band(axes: Any, records: Rows, name: str, number: int = 0) -> None:
    """The mean over seeds as a line, from the lowest to the highest as a band."""
    seeds = _values(records, "seed")
    curves = [[row for row in records if row["seed"] == seed] for seed in seeds]
    length = min(map(len, curves), default=0)
    steps = [float(row["step"] or 0) for row in curves[0][:length]] if curves else []
    numbers = np.array([[float(row["number"] or 0) for row in curve[:length]] for curve in curves])
    colour, dash = (
        POLICY_LIGHT[number % len(POLICY_LIGHT)],
        ("solid", "dashed")[number // len(POLICY_LIGHT) % 2],
    )
    if length:
        axes.fill_between(
            steps, numbers.min(axis=0), numbers.max(axis=0), color=colour, alpha=0.2, linewidth=0
        )
        axes.plot(steps, numbers.mean(axis=0), color=colour, linestyle=dash, label=name, linewidth=1.8)


def _lines(axes: Any, records: Rows, along: str, rules: Sequence[str]) -> None:
    """A line for each rule, or only its points where the values have no order."""
    values = _values(records, along)
    ordered = all(str(value).replace(".", "").isdecimal() for value in values)
    for i, rule in enumerate(rules):
        own = [row for row in records if row["rule"] == rule]
        colour, dash = POLICY_LIGHT[i % len(POLICY_LIGHT)], "solid" if ordered else "none"
        y = [1 / float(row["bound / JCT"] or 1.0) for row in own]
        axes.plot(range(len(own)), y, color=colour, linestyle=dash, label=rule, **STYLE)
    axes.set_xticks(range(len(values)), [str(value) for value in values])


def _values(records: Rows, column: str) -> list[Cell]:
    return list(dict.fromkeys(row[column] for row in records))


def _legend(figure: Any, axes: Any, columns: int) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(
        *handles, loc="outside upper left", ncols=columns, frameon=False, fontsize=8, labelcolor=INK
    )
