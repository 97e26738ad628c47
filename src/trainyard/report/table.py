"""The tables of the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from trainyard.report import units
from trainyard.report.measures import (
    FALLBACK_SHARE,
    MEASURES,
    NODE_FAILURES,
    RARE,
    RESCUES,
    RUNS_LOST,
    Summary,
    number,
    winners,
    with_speedup,
    worth_showing,
)
from trainyard.report.outcomes import counted, others
from trainyard.report.papers import papers

GAP = 2  # blanks between columns
POLICY_WIDTH = 24  # a longer policy name is folded rather than push out a column


class Heading(NamedTuple):
    """One or two measures under one heading; columns of higher rank are left out first."""

    heading: str
    keys: tuple[str, ...]
    rank: int


COLUMNS = (
    Heading("avg\nJCT", ("avg_jct_s",), 0),
    Heading("x vs\nfirst", ("speedup",), 1),
    Heading("left to\nothers", (FALLBACK_SHARE,), 1),
    Heading("res-\ncues", (RESCUES,), 1),
    Heading("median\nJCT", ("median_jct_s",), 5),
    Heading("p95\nJCT", ("p95_jct_s",), 7),
    Heading("p99\nJCT", ("p99_jct_s",), 2),
    Heading("avg\nqueue", ("avg_queue_s",), 6),
    Heading("make-\nspan", ("makespan_s",), 3),
    Heading("GPU\nuse", ("gpu_utilization",), 4),
    Heading("preempt/\nrestart", ("preemptions", "restarts"), 8),
    Heading("nodes/runs\nlost", (NODE_FAILURES, RUNS_LOST), 5),
    Heading("fairness\navg/max", ("finish_time_fairness_avg", "finish_time_fairness_max"), 9),
    Heading("Jain\nindex", ("jain_index",), 11),
    Heading("decide ms\np50/p99", ("decision_p50_ms", "decision_p99_ms"), 10),
)


def comparison_table(summaries: Sequence[Summary], *, width: int = 120) -> Table:
    """Lay out one row per policy, best values bold, with as many columns as the width has room for."""
    rows = with_speedup(summaries)
    cells = {
        column: _cells(rows, column)
        for column in COLUMNS
        if worth_showing(column.keys[0], rows, (*RARE, FALLBACK_SHARE))
    }
    names = [str(row.get("policy", "")) for row in rows]
    cited = ["\n".join(papers(name)) for name in names]
    shown, left_out = _fit(cells, width - _policy_width(names) - _paper_width(cited))
    table = _headed(_policy_width(names), any(cited), shown)
    for i, name in enumerate(names):
        paper = [Text(cited[i])] if any(cited) else []
        table.add_row(Text(_fold(name)), *paper, *(cells[column][i] for column in shown))
    if left_out:
        table.caption = "A wider terminal also shows " + ", ".join(
            c.heading.replace("/\n", "/").replace("-\n", "").replace("\n", " ") for c in left_out
        )
        table.caption_justify = "left"
    return table


def _headed(policy_width: int, with_papers: bool, shown: Sequence[Heading]) -> Table:
    """Start a table with its headings."""
    # The box itself puts one blank between columns.
    table = Table(box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("policy", overflow="fold", vertical="top", max_width=policy_width)
    if with_papers:
        table.add_column("paper", no_wrap=True, vertical="top")
    for column in shown:
        table.add_column(column.heading, justify="right", no_wrap=True, vertical="top")
    return table


def _cells(rows: Sequence[Summary], column: Heading) -> list[Text]:
    measures = [MEASURES[key] for key in column.keys]
    best = [winners(rows, measure) for measure in measures]
    return [
        Text("/").join(
            Text(m.show(number(row, m.key)), style="bold" if i in who else "")
            for m, who in zip(measures, best, strict=True)
        )
        for i, row in enumerate(rows)
    ]


def _fold(name: str) -> str:
    """Break a long policy name between its parts."""
    lines = [""]
    for part in re.findall(r"[^+,]*[+,]|[^+,]+", name):
        if lines[-1] and cell_len(lines[-1] + part) > POLICY_WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _policy_width(names: Sequence[str]) -> int:
    return min(
        POLICY_WIDTH,
        max([cell_len(line) for name in names for line in _fold(name).split("\n")] + [len("policy")]),
    )


def _paper_width(cited: Sequence[str]) -> int:
    if not any(cited):
        return 0
    return GAP + max(cell_len(line) for text in ("paper", *cited) for line in text.split("\n"))


def _fit(cells: dict[Heading, list[Text]], room: int) -> tuple[list[Heading], list[Heading]]:
    """Split the columns into those that fit and those that do not, by rank."""

    def needs(column: Heading) -> int:
        return GAP + max(
            [len(line) for line in column.heading.split("\n")] + [c.cell_len for c in cells[column]]
        )

    kept: set[Heading] = set()
    for column in sorted(cells, key=lambda c: c.rank):
        room -= needs(column)
        if room < 0:
            break
        kept.add(column)
    return [c for c in cells if c in kept], [c for c in cells if c not in kept]


def summary_table(summary: Summary) -> Table:
    """Lay out one run as a list of named values."""
    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True, justify="right")
    table.add_column(style="dim")
    done, jobs = counted(summary).get("done", 0), number(summary, "jobs")
    table.add_row("policy", Text(str(summary.get("policy", ""))), "")
    table.add_row("jobs done", f"{units.count(done)} of {units.count(jobs)}", others(summary))
    for measure in MEASURES.values():
        if measure.key in summary and worth_showing(measure.key, [summary]):
            table.add_row(measure.label, measure.show(number(summary, measure.key)), measure.meaning)
    return table
