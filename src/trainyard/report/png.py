"""The plots as PNG files, for papers and slides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainyard.errors import InputError
from trainyard.files.output import prepare_out_dir, write_bytes_atomic
from trainyard.model.tolerance import SECONDS
from trainyard.report import palette, series
from trainyard.report.canvas import INK, clean, new_figure, plain, png_bytes
from trainyard.report.gantt import Gantt, build_gantt
from trainyard.report.measures import number
from trainyard.report.units import DURATION_TICKS, TimeUnit, axis_unit
from trainyard.sim.result import Result

MPL_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
GANTT_PANELS = 3
UTILIZATION_BUCKETS = 120
LETTERS_PER_INCH = 13  # of the legend
SAMPLE_LETTERS = 7  # room that a line sample takes beside its name


def write_pngs(directory: Path, results: Sequence[Result]) -> list[Path]:
    """Write jct_cdf.png, queue.png, utilization.png and gantt.png and return where they are."""
    if not results:
        raise InputError("there are no results to plot")
    new_figure(1, 1)  # fails before anything is written when matplotlib is missing
    prepare_out_dir(directory)
    drawn = {
        "jct_cdf.png": _jct_cdf(results),
        "queue.png": _queue(results),
        "utilization.png": _utilization(results),
        "gantt.png": _gantt(results),
    }
    for name, figure in drawn.items():
        write_bytes_atomic(directory / name, png_bytes(figure))
    return [directory / name for name in drawn]


def _axes(figure: Any, xlabel: str, ylabel: str) -> Any:
    axes = figure.add_subplot()
    clean(axes)
    axes.set_xlabel(xlabel, color=INK)
    axes.set_ylabel(ylabel, color=INK)
    return axes


def _line_style(index: int) -> dict[str, Any]:
    colour, dash = palette.policy_style(index)
    return {"color": palette.POLICY_LIGHT[colour], "linestyle": MPL_DASHES[dash], "linewidth": 1.6}


def _legend(figure: Any, results: Sequence[Result]) -> None:
    if not figure.axes[0].get_legend_handles_labels()[1]:
        return
    room = int(figure.get_figwidth() * LETTERS_PER_INCH)
    columns = legend_columns([len(r.policy) for r in results], room)
    figure.legend(loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5, labelcolor=INK)


def legend_columns(lengths: Sequence[int], room: int) -> int:
    """Return how many columns of names of these lengths fit side by side."""
    for columns in range(min(4, len(lengths)), 1, -1):
        widest = [int(part.max()) for part in np.array_split(np.array(lengths), columns)]
        if sum(widest) + SAMPLE_LETTERS * columns <= room:
            return columns
    return 1


def _jct_cdf(results: Sequence[Result]) -> Any:
    figure = new_figure(7, 4.2)
    axes = _axes(figure, "job completion time", "fraction of all jobs")
    for i, result in enumerate(results):
        points = series.cdf(np.maximum(result.outcomes.jct_s, DURATION_TICKS[0][0]))
        axes.step(points.x, points.fraction, where="post", label=plain(result.policy), **_line_style(i))
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    low, high = axes.get_xlim()
    ticks = [(at, label) for at, label in DURATION_TICKS if low <= at <= high]
    axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.set_xticks([], minor=True)
    _legend(figure, results)
    return figure


def _time_unit(results: Sequence[Result]) -> TimeUnit:
    return axis_unit(max(r.end_s for r in results))


def _queue(results: Sequence[Result]) -> Any:
    unit = _time_unit(results)
    figure = new_figure(8, 3.6)
    axes = _axes(figure, f"time ({unit.name})", "jobs waiting")
    for i, result in enumerate(results):
        _draw_steps(axes, series.keep_extremes(series.queue_steps(result)), unit, result.policy, i)
    axes.set_ylim(bottom=0)
    _legend(figure, results)
    return figure


def _utilization(results: Sequence[Result]) -> Any:
    unit = _time_unit(results)
    figure = new_figure(8, 3.6)
    axes = _axes(figure, f"time ({unit.name})", "GPUs in use")
    for i, result in enumerate(results):
        steps = series.time_means(series.utilization_steps(result), UTILIZATION_BUCKETS)
        _draw_steps(axes, steps, unit, result.policy, i)
    axes.set_ylim(0, 1.03)
    axes.set_yticks(np.linspace(0, 1, 6), [f"{p}%" for p in range(0, 101, 20)])
    _legend(figure, results)
    return figure


def _draw_steps(axes: Any, steps: series.Steps, unit: TimeUnit, label: str, index: int) -> None:
    if steps.time_s.size:
        times = np.append(steps.time_s, steps.end_s) / unit.seconds
        levels = np.append(steps.level, steps.level[-1])
        axes.step(times, levels, where="post", label=plain(label), **_line_style(index))


def _gantt(results: Sequence[Result]) -> Any:
    chosen = _panels(results)
    chart = build_gantt([results[i] for i in chosen], max_nodes=12, max_bars=2500)
    height = min(max(0.045 * chart.top, 1.4), 3.2)
    figure = new_figure(9, 0.6 + (height + 0.35) * len(chosen))
    unit = axis_unit(chart.end_s - chart.start_s)
    colours = _job_fills(results[0])
    panels = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for axes, i, bars in zip(panels, chosen, chart.bars, strict=True):
        clean(axes)
        _draw_bars(axes, chart, bars, colours, unit.seconds)
        axes.set_title(plain(results[i].policy), loc="left", fontsize=10, color=INK)
    panels[-1].set_xlabel(f"time ({unit.name})", color=INK)
    figure.supxlabel(chart.caption() + " One colour per job.", fontsize=8, color="#666666", x=0.01, ha="left")
    return figure


def _panels(results: Sequence[Result]) -> list[int]:
    """Choose the first policy and those with the shortest average JCT, in the order given."""
    jct = [number(r.summary(), "avg_jct_s") for r in results]
    ranked = sorted(range(1, len(results)), key=lambda i: (np.isnan(jct[i]), jct[i], i))
    return sorted([0, *ranked[: GANTT_PANELS - 1]])


def _job_fills(result: Result) -> dict[str, str]:
    return {job: palette.FILLS[i % len(palette.FILLS)] for i, job in enumerate(result.outcomes.job_id)}


def _draw_bars(axes: Any, chart: Gantt, bars: Sequence[Any], colours: dict[str, str], unit_s: float) -> None:
    from matplotlib.collections import PolyCollection

    boxes = [
        [(s, b.low), (s, b.low + b.lanes), (e, b.low + b.lanes), (e, b.low)]
        for b in bars
        for s, e in [(max(b.start_s, chart.start_s) / unit_s, min(b.end_s, chart.end_s) / unit_s)]
    ]
    fills = [colours.get(b.job_id, palette.OTHER_FILL) for b in bars]
    axes.add_collection(PolyCollection(boxes, facecolors=fills, edgecolors="white", linewidths=0.3))
    axes.set_xlim(chart.start_s / unit_s, max(chart.end_s, chart.start_s + SECONDS) / unit_s)
    axes.set_ylim(-0.5, chart.top + 0.5)
    axes.set_yticks(
        [band.centre for band in chart.bands], [plain(band.node.node_id) for band in chart.bands], fontsize=7
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
