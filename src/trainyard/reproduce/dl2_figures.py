"""The pictures of the DL2 experiments, drawn from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.dl2_theirs import BOUND
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
