"""Tables for terminals: columns cut to the width, never wrapped, no colour."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from trainyard.cli.shown.plain import one_line

GAP = "  "
CUT = ".."
NARROWEST = 6  # no column is cut to less


def room() -> int | None:
    """Return the width to keep to; None where nobody looks at a terminal."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


def lines(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return a table, line by line."""
    cells = [list(headings), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    if width is not None:
        widths = _narrowed(widths, width - len(GAP) * (len(widths) - 1))
    return [_line(row, widths, width) for row in cells]


def show(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout."""
    for line in lines(headings, rows, room()):
        print(line)


def _narrowed(widths: list[int], most: int) -> list[int]:
    """Take from the widest column until all fit, the last one first."""
    widths = list(widths)
    while sum(widths) > most:
        widest = max(range(len(widths)), key=lambda column: (widths[column], column))
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    cut = (_cut(cell, most).ljust(most) for cell, most in zip(row, widths, strict=True))
    return GAP.join(cut).rstrip()[:width]


def _cut(cell: str, most: int) -> str:
    return cell if len(cell) <= most else cell[: max(most - len(CUT), 0)] + CUT[:most]
