"""Cells of the report's tables: headings to sort by, and numbers with the best one marked."""

from __future__ import annotations

from html import escape

from trainyard.report.measures import Measure


def heading(label: str, meaning: str) -> str:
    """Return the heading of a column that can be sorted."""
    return f'<th scope="col" title="{escape(meaning)}"><button type="button">{escape(label)}</button></th>'


def cell(value: float, measure: Measure, best: bool) -> str:
    """Return a number, marked if it is the best."""
    mark = ' class="best"' if best else ""
    return f'<td data-value="{value!r}"{mark}>{escape(measure.show(value))}</td>'
