"""Results by tenant: a table of the terminal, and one of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from trainyard.report import units
from trainyard.report.cells import cell, heading
from trainyard.report.measures import MEASURES, Measure, Summary, number, winners

MOST = 20  # tenants in a table
NOBODY = "(no tenant)"
GPU_HOURS = Measure("gpu_s", "GPU-hours", "time of all its jobs' GPUs", units.hours, "")
SHOWN = (MEASURES["avg_jct_s"], MEASURES["avg_queue_s"], GPU_HOURS)


class Row(NamedTuple):
    """One tenant, and its numbers under each policy."""

    name: str
    runs: list[Summary]

    @property
    def jobs(self) -> float:
        """How many jobs it has."""
        return number(self.runs[0], "jobs")


class Rows(NamedTuple):
    """The tenants that used the most GPU time in the first run, and how many others there are."""

    shown: list[Row]
    others: int

    @property
    def left_out(self) -> str:
        """Say how many tenants are not shown; empty if all are."""
        return f"and {self.others:,} more tenants with less GPU time; --json has all" if self.others else ""


def rows_of(summaries: Sequence[Summary]) -> Rows:
    """Gather the tenants of all runs; none unless there are several."""
    found = [tenants for s in summaries if isinstance(tenants := s.get("tenants"), Mapping)]
    names = list(found[0]) if found else []
    if len(names) < 2:
        return Rows([], 0)
    largest = sorted(names, key=lambda name: (-number(found[0][name], "gpu_s"), name))[:MOST]
    rows = [Row(name or NOBODY, [tenants[name] for tenants in found]) for name in largest]
    return Rows(rows, len(names) - len(rows))


def tenant_table(summaries: Sequence[Summary], width: int = 120) -> Table | None:
    """Lay out the tenants of one run or several; None unless there are several tenants."""
    rows = rows_of(summaries)
    if not rows.shown:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.title, table.title_justify, table.title_style = "By tenant", "left", "bold"
    table.add_column("tenant", overflow="fold", max_width=30)
    table.add_column("jobs", justify="right", no_wrap=True)
    columns = _measures(rows) if len(summaries) == 1 else _policies(summaries, rows)
    fit = _fitting(rows, columns, width)
    for policy, _ in columns[:fit]:
        table.add_column(policy, justify="right", no_wrap=True)
    for i, row in enumerate(rows.shown):
        table.add_row(Text(row.name), units.count(row.jobs), *(cells[i] for _, cells in columns[:fit]))
    what = "avg JCT/avg queue" if len(summaries) > 1 else ""
    missing = f"a wider terminal also shows {len(columns) - fit} more policies" if fit < len(columns) else ""
    table.caption = "; ".join(said for said in (what, missing, rows.left_out) if said)
    table.caption_justify = "left"
    return table


Column = tuple[Text, list[Text]]  # heading and cells


def _measures(rows: Rows) -> list[Column]:
    """One run: a column for each measure."""
    return [(Text(m.label), [Text(m.show(number(row.runs[0], m.key))) for row in rows.shown]) for m in SHOWN]


def _policies(summaries: Sequence[Summary], rows: Rows) -> list[Column]:
    """Several runs: a column for each, completion time and wait in one cell, the best of a tenant in bold."""
    best = [[winners(row.runs, m) for m in SHOWN[:2]] for row in rows.shown]
    return [
        (
            Text(str(s["policy"]).replace("+", "+\n")),
            [
                Text("/").join(
                    Text(m.show(number(row.runs[i], m.key)), style="bold" if i in who else "")
                    for m, who in zip(SHOWN[:2], best[k], strict=True)
                )
                for k, row in enumerate(rows.shown)
            ],
        )
        for i, s in enumerate(summaries)
    ]


def _fitting(rows: Rows, columns: Sequence[Column], width: int) -> int:
    """Return how many columns there is room for; one at least."""
    room = width - min(30, max(len(row.name) for row in rows.shown)) - len("jobs") - 6
    fit = 0
    for above, cells in columns:
        room -= 2 + max([len(line) for line in above.plain.split("\n")] + [text.cell_len for text in cells])
        if room < 0:
            break
        fit += 1
    return max(fit, 1)


def tenants_html(summaries: Sequence[Summary]) -> str:
    """Return the section of the report on tenants; empty unless there are several."""
    rows = rows_of(summaries)
    if not rows.shown:
        return ""
    policies = "".join(
        f'<th scope="colgroup" colspan="{len(SHOWN)}">{escape(str(s["policy"]))}</th>' for s in summaries
    )
    measures = "".join(heading(m.label, m.meaning) for m in SHOWN) * len(summaries)
    head = (
        heading("tenant", "those with the most GPU time first") + heading("jobs", "jobs handed in") + measures
    )
    body = "\n".join(_row(i, row) for i, row in enumerate(rows.shown))
    return (
        '<section class="wide">\n  <h2>By tenant</h2>\n'
        "  <p>Who among those that share the cluster gains and who pays. The best of each tenant is marked.\n"
        f"     Click a heading to sort. {escape(rows.left_out)}</p>\n"
        '  <div class="scroll"><table class="sorts">\n'
        f"<thead><tr><td></td><td></td>{policies}</tr>\n<tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "  </table></div>\n</section>"
    )


def _row(index: int, row: Row) -> str:
    best = {m.key: winners(row.runs, m) for m in SHOWN}
    cells = "".join(
        cell(number(run, m.key), m, i in best[m.key]) for i, run in enumerate(row.runs) for m in SHOWN
    )
    name = f'<th scope="row" data-value="{index}">{escape(row.name)}</th>'
    return f'<tr>{name}<td data-value="{row.jobs!r}">{escape(units.count(row.jobs))}</td>{cells}</tr>'
