"""What every PNG has in common: paper, ink, grid, and the way into a file."""

from __future__ import annotations

import io
from typing import Any

from trainyard.errors import InputError

DPI = 150
INK, GRID = "#222222", "#DDDDDD"


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of this width and height in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("PNG plots need matplotlib: pip install 'trainyard[plots]'") from error
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


def png_bytes(figure: Any) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    # Without the version of the software in it, the same results give the same bytes.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def clean(axes: Any) -> None:
    """Take the box and the clutter away from axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(colors=INK, labelsize=9)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)


def labelled(axes: Any, xlabel: str, ylabel: str = "", title: str = "") -> None:
    """Clean the axes and write on them what they show."""
    clean(axes)
    axes.margins(x=0.04)
    axes.set_xlabel(xlabel, color=INK, fontsize=9)
    axes.set_ylabel(ylabel, color=INK, fontsize=9)
    axes.set_title(title, loc="left", fontsize=10, color=INK)


def plain(text: str) -> str:
    """Keep names from being read as formulas."""
    return text.replace("$", r"\$")
