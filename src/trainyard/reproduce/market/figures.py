"""The pictures of the market's experiments, drawn from the tables."""

from __future__ import annotations

from typing import Any

from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.findings import Table

STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 4}
SHOWN = (
    "prices, closed form",
    "prices, 64 samples",
    "categories, 100 samples",
    "categories, 100 samples, no walk",
    "plain integer program",
    "marginal gains (Optimus-like)",
)


def _legend(figure: Any, axes: Any, columns: int = 3) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(
        *handles, loc="outside upper left", ncols=columns, frameon=False, fontsize=8, labelcolor=INK
    )


def draw_gaps(table: Table, paper: float) -> dict[str, bytes]:
    """Gap to the optimum and CPU time over the size of the instance."""
    rows = table.records()
    sizes = list(dict.fromkeys(str(row["jobs x workers"]) for row in rows))
    figure = new_figure(7.5, 3.6)
    left, right = figure.subplots(1, 2)
    for colour, name in zip(POLICY_LIGHT, SHOWN, strict=False):
        own = [row for row in rows if row["method"] == name]
        at = [sizes.index(str(row["jobs x workers"])) for row in own]
        left.plot(
            at, [max(float(row["gap %"] or 0.0), 1e-3) for row in own], color=colour, label=name, **STYLE
        )
        right.plot(at, [row["CPU s"] for row in own], color=colour, **STYLE)
    left.axhline(paper, color=INK, linewidth=0.8, linestyle=":")
    left.annotate(f"the paper: {paper} %", (0, paper), fontsize=8, color=INK, va="bottom")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_xticks(range(len(sizes)), sizes, rotation=45, ha="right")
    labelled(left, "jobs x workers", "above the optimum, % (0 is drawn at 0.001)")
    labelled(right, "jobs x workers", "CPU seconds")
    _legend(figure, left, 2)
    return {"market-gaps.png": png_bytes(figure)}


def draw_fairness(table: Table) -> dict[str, bytes]:
    """Fairness against completion time."""
    rows = table.records()
    figure = new_figure(7, 3.4)
    panels = figure.subplots(1, 2)
    sizes = dict.fromkeys(row["jobs x workers"] for row in rows)
    for axes, y in zip(panels, ("Jain of ratios", "worst ratio"), strict=True):
        for colour, size in zip(POLICY_LIGHT, sizes, strict=False):
            own = [r for r in rows if r["jobs x workers"] == size and "cap" in str(r["fairness"])]
            x = [row["avg JCT above fastest %"] for row in own]
            axes.plot(x, [row[y] for row in own], color=colour, label=f"{size}, caps", **STYLE)
            beta = [r for r in rows if r["jobs x workers"] == size and "beta" in str(r["fairness"])]
            if beta:
                x = [row["avg JCT above fastest %"] for row in beta]
                axes.plot(
                    x, [r[y] for r in beta], color=colour, linestyle=":", marker="s", label=f"{size}, beta"
                )
        labelled(axes, "average JCT above the fastest, %", y)
    _legend(figure, panels[0], 4)
    return {"market-fairness.png": png_bytes(figure)}


def draw_split(table: Table) -> dict[str, bytes]:
    """Penalty of the equal split over bandwidth."""
    rows = table.records()
    figure = new_figure(5, 3.2)
    axes = figure.subplots()
    for colour, name in zip(POLICY_LIGHT, ("market", "random placement"), strict=False):
        y = [row[f"{name}, equal / proportional"] for row in rows]
        axes.plot([row["Gb/s"] for row in rows], y, color=colour, label=name, **STYLE)
    axes.set_xscale("log")
    labelled(axes, "network, Gb/s", "JCT, equal / proportional split")
    _legend(figure, axes)
    return {"market-split.png": png_bytes(figure)}


def draw_online(table: Table) -> dict[str, bytes]:
    """Average completion time by policy and load, and fairness against it at the middle load."""
    rows = table.records()
    loads = list(dict.fromkeys(row["load"] for row in rows))
    names = list(dict.fromkeys(str(row["policy"]) for row in rows))
    figure = new_figure(7.5, 3.8)
    left, right = figure.subplots(1, 2)
    for at, load in enumerate(loads):
        own = {str(row["policy"]): row for row in rows if row["load"] == load}
        y = [i + 0.25 * at for i in range(len(names))]
        x = [own[name]["avg JCT h"] for name in names]
        left.barh(y, x, 0.22, color=POLICY_LIGHT[at], label=f"load {load}")
    left.set_yticks([i + 0.25 for i in range(len(names))], names, fontsize=8)
    left.invert_yaxis()
    labelled(left, "average JCT, h", "")
    middle = [row for row in rows if row["load"] == loads[len(loads) // 2]]
    below = 0.0  # labels keep their distance
    for row in sorted(middle, key=lambda row: float(row["Jain"] or 0.0)):
        name, jct, jain = str(row["policy"]), float(row["avg JCT h"] or 0.0), float(row["Jain"] or 0.0)
        right.plot(jct, jain, "o", color=POLICY_LIGHT[0 if name.startswith("market") else 1], markersize=4)
        below = max(jain, below + 0.028)
        right.annotate(name, (1.06 * jct, below), fontsize=6.5, color=INK, va="center")
    right.set_xscale("log")
    right.set_xlim(0.4, 2.2 * max(float(row["avg JCT h"] or 0.0) for row in middle))
    right.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    right.minorticks_off()
    labelled(right, "average JCT, h", f"Jain's index, load {loads[len(loads) // 2]}")
    _legend(figure, left)
    return {"market-online.png": png_bytes(figure)}
