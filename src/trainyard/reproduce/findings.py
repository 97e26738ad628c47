"""What a reproduction gives back: tables with theirs beside ours, and pictures; and how they are written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trainyard.files.output import write_bytes_atomic, write_text_atomic

if TYPE_CHECKING:
    from rich.console import Group

Cell = str | float | None
MISSING = "-"
LONG = 20  # letters of a cell that may be folded
MANY = 11  # columns that stand close together


class Heading(NamedTuple):
    """A heading, and how the numbers below it are written."""

    name: str
    form: str = "{}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table; its name is also that of its file."""

    name: str
    title: str
    columns: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def texts(self) -> list[list[str]]:
        """Return the rows as they are shown."""
        forms = [column.form for column in self.columns]
        return [[_text(cell, form) for cell, form in zip(row, forms, strict=True)] for row in self.rows]

    def records(self) -> list[dict[str, Cell]]:
        """Return the rows as heading -> cell."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Findings:
    """All tables and pictures (file name -> PNG) of one paper."""

    paper: str
    tables: Sequence[Table]
    pictures: Mapping[str, bytes]


def _text(cell: Cell, form: str) -> str:
    if cell is None:
        return MISSING
    return cell if isinstance(cell, str) else form.format(cell)


def for_terminal(table: Table) -> Group:
    """Lay out a table for the terminal."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    gap = int(len(table.columns) < MANY)
    shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False)
    texts = table.texts()
    for column, cells, own in zip(
        table.columns, zip(*texts, strict=True), zip(*table.rows, strict=True), strict=True
    ):
        shown.add_column(
            column.name.replace(" ", "\n").replace("/", "/\n"),
            justify="left" if isinstance(own[0], str) else "right",
            vertical="bottom",
            no_wrap=max(map(len, cells)) < LONG,
        )
    for row in texts:
        shown.add_row(*map(Text, row))
    return Group(Text(f"\n{table.title}", style="bold"), "", shown, Text(table.note, style="dim"))


def write_findings(directory: Path, findings: Findings) -> Path:
    """Write results.md with the pictures, results.json, and each table as CSV; return where to look first."""
    for name, picture in findings.pictures.items():
        write_bytes_atomic(directory / name, picture)
    for table in findings.tables:
        write_text_atomic(directory / f"{table.name}.csv", _csv(table))
    named = {table.name: _records(table) for table in findings.tables}
    write_text_atomic(directory / "results.json", json.dumps(named, indent=1, allow_nan=False) + "\n")
    page = directory / "results.md"
    write_text_atomic(page, markdown(findings))
    return page


def _records(table: Table) -> list[dict[str, Cell]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows(table.rows)
    return text.getvalue()


def markdown(findings: Findings) -> str:
    """Return all tables as one Markdown page, pictures last."""
    parts = [f"# {findings.paper}"]
    for table in findings.tables:
        lines = [[column.name for column in table.columns], ["---"] * len(table.columns), *table.texts()]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append("\n\n".join(part for part in (f"## {table.title}", body, table.note) if part))
    parts += [f"![{name}]({name})" for name in findings.pictures]
    return "\n\n".join(parts) + "\n"
