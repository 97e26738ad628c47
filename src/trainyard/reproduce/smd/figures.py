"""The pictures of SMD's experiments, drawn from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.findings import Cell, Table

OURS_STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 4}
THEIRS_STYLE: dict[str, Any] = {"linestyle": ":", "marker": "s", "markersize": 5, "markerfacecolor": "none"}
KINDS = ("sync", "async")
TITLES = {"sync": "synchronous training", "async": "asynchronous training"}

Record = dict[str, Cell]


def draw(tables: Mapping[str, Table]) -> dict[str, bytes]:
    """Return file name -> PNG."""
    rows = {name: table.records() for name, table in tables.items()}
    figures = {
        "smd-capacity.png": _totals(rows["capacity"], "units", "units of capacity, 50 jobs"),
        "smd-jobs.png": _totals(rows["jobs"], "jobs", "jobs"),
        "smd-gains.png": _gains(rows["capacity_gains"], rows["jobs_gains"]),
        "smd-optimum.png": _optimum(rows["optimum"], rows["use"]),
    }
    return {name: png_bytes(figure) for name, figure in figures.items()}


def _line(axes: Any, rows: Sequence[Record], x: str, y: str, **style: Any) -> None:
    axes.plot([row[x] for row in rows], [row[y] for row in rows], **style)


def _legend(figure: Any, axes: Any) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=5, frameon=False, fontsize=8.5, labelcolor=INK)


def _totals(rows: Sequence[Record], x: str, xlabel: str) -> Any:
    """Total utility of every method: ours above, theirs below, each on its own scale."""
    figure = new_figure(7, 4.6)
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for line, whose, style in zip(panels, ("", "their "), (OURS_STYLE, THEIRS_STYLE), strict=True):
        for axes, kind in zip(line, KINDS, strict=True):
            own = [row for row in rows if row["training"] == kind]
            for colour, name in zip(POLICY_LIGHT, ("SMD", "ESW", "Optimus"), strict=False):
                _line(axes, own, x, f"{whose}{name}", color=colour, label=name, **style)
            labelled(axes, xlabel, f"{whose}total utility", TITLES[kind])
            axes.set_ylim(bottom=0)
            axes.set_xticks([row[x] for row in own])
            axes.label_outer()
    _legend(figure, panels[0, 0])
    return figure


def _gains(by_capacity: Sequence[Record], by_jobs: Sequence[Record]) -> Any:
    """How far SMD is above the others, theirs dotted."""
    figure = new_figure(7, 4.6)
    panels = figure.subplots(2, 2, sharey=True)
    for line, rows, x in zip(panels, (by_capacity, by_jobs), ("units", "jobs"), strict=True):
        for axes, kind in zip(line, KINDS, strict=True):
            own = [row for row in rows if row["training"] == kind]
            for colour, name in zip(POLICY_LIGHT[1:], ("ESW", "Optimus"), strict=False):
                _line(axes, own, x, f"SMD/{name}", color=colour, label=f"over {name}", **OURS_STYLE)
                known = {"color": colour, "label": f"over {name}, theirs", **THEIRS_STYLE}
                _line(axes, own, x, f"their SMD/{name}", **known)
            labelled(axes, x, "utility of SMD / other", TITLES[kind])
            axes.axhline(1.0, color=INK, linewidth=0.8)
            axes.set_xticks([row[x] for row in own])
        line[1].set_ylabel("")
    _legend(figure, panels[0, 0])
    return figure


def _optimum(optimum: Sequence[Record], use: Sequence[Record]) -> Any:
    """SMD beside the optimum, and what its jobs use of what they reserve."""
    figure = new_figure(7, 3.2)
    left, right = figure.subplots(1, 2)
    for axes, rows, y in ((left, optimum, "SMD/optimum"), (right, use, "used/reserved")):
        for colour, kind in zip(POLICY_LIGHT, KINDS, strict=False):
            own = [row for row in rows if row["training"] == kind]
            _line(axes, own, "jobs", y, color=colour, label=kind, **OURS_STYLE)
            _line(axes, own, "jobs", "theirs", color=colour, label=f"{kind}, theirs", **THEIRS_STYLE)
        axes.set_xticks([row["jobs"] for row in own])
    labelled(left, "jobs", "utility of SMD / optimum")
    labelled(right, "jobs", "used / reserved")
    left.set_ylim(0.7, 1.02)
    right.set_ylim(0, 1)
    _legend(figure, left)
    return figure


def draw_online(table: Table) -> dict[str, bytes]:
    """Draw average completion time and jobs in time over the load."""
    rows = table.records()
    names = list(dict.fromkeys(row["size"] for row in rows))
    figure = new_figure(7, 3.2)
    panels = figure.subplots(1, 2)
    for axes, y in zip(panels, ("avg JCT h", "in time %"), strict=True):
        for colour, name in zip(POLICY_LIGHT, names, strict=False):
            own = [row for row in rows if row["size"] == name]
            _line(axes, own, "load", y, color=colour, label=name, **OURS_STYLE)
        labelled(axes, "load", y)
        axes.set_ylim(bottom=0)
        axes.set_xticks(list(dict.fromkeys(row["load"] for row in rows)))
    _legend(figure, panels[0])
    return {"smd-online.png": png_bytes(figure)}
