"""The text of a trace, and rows of tables whose cells are read by name: complaints say file, line, field."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from operator import itemgetter
from typing import NamedTuple

from trainyard.errors import InputError
from trainyard.files.csv_table import CsvTable, checked
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.model.limits import LARGEST


@dataclass(frozen=True, slots=True)
class Source:
    """A trace as it was found: its text, read once, and where that was."""

    where: str
    text: str

    @classmethod
    def open(cls, path: StrPath) -> Source:
        """Read a file, gzip or plain; "-" is the standard input."""
        return cls(name_of(path), read_text(path, "a trace"))

    def head(self, lines: int = 2) -> list[str]:
        """Return the first lines that are not empty."""
        return list(islice((line for line in io.StringIO(self.text) if line.strip()), lines))


class Row(NamedTuple):
    """One row: its cells by column, and where it is."""

    where: str
    line: int
    cells: Sequence[str]
    columns: Mapping[str, int]

    def text(self, name: str) -> str:
        """Return a cell; empty where the table has no such column."""
        index = self.columns.get(name)
        return self.cells[index].strip() if index is not None else ""

    def number(self, name: str, default: float | None = None) -> float:
        """Read a cell as a finite number; an empty one has the default, if there is one."""
        try:
            value = float(self.cells[self.columns[name]])
        except (KeyError, ValueError):
            text = self.text(name)
            if not text and default is not None:
                return default
            raise self.error(name, text, "a number") from None
        if not abs(value) <= LARGEST:
            wanted = f"a number of at most {LARGEST:g}" if isfinite(value) else "a finite number"
            raise self.error(name, self.text(name), wanted)
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """Read a cell as a whole number."""
        value = self.number(name, default)
        if value != int(value):
            raise self.error(name, self.text(name), "a whole number")
        return int(value)

    def time(self, name: str) -> float | None:
        """Read a date and time as seconds since 1970 on its own clock; an empty cell is None."""
        text = self.text(name)
        if text in ("", "None", "NaT", "nan"):
            return None
        try:
            return clock_s(text)
        except ValueError:
            raise self.error(name, text, "a time such as 2020-06-09 18:41:01") from None

    def error(self, name: str, text: str, wanted: str) -> InputError:
        """Say what is wrong with a cell and what would be right."""
        found = f"'{text[:40]}' is not {wanted}" if text else f"is empty; it must be {wanted}"
        return InputError(found, where=self.where, line=self.line, field=name)


def clock_s(text: str) -> float:
    """Return the seconds since 1970 that a wall clock shows; its time zone, if given, is left aside."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def table(source: Source, required: Sequence[str]) -> Iterator[Row]:
    """Read a CSV with a header that has at least the required columns."""
    rows = CsvTable(source.text, source.where, (), required)
    columns = {name: i for i, name in enumerate(rows.header)}
    return (Row(source.where, line, cells, columns) for line, cells in rows.rows())


def four(source: Source, columns: Sequence[str]) -> Iterator[tuple[str, float, int, float]]:
    """Read job, arrival, GPUs and run time from these columns: the same as from `table`, but quicker."""
    rows = CsvTable(source.text, source.where, (), columns)
    index = {name: i for i, name in enumerate(rows.header)}
    pick = itemgetter(*[index[name] for name in columns])
    _, arrival, size, duration = columns
    for line, cells in rows.rows():
        job_id, at, count, lasting = pick(cells)
        try:
            arrival_s, gpus, duration_s = float(at), int(count), float(lasting)
            plain = abs(arrival_s) <= LARGEST and abs(duration_s) <= LARGEST
        except ValueError:
            plain = False
        if not plain:  # whole numbers may have a point; of anything else the row says what is wrong
            row = Row(source.where, line, cells, index)
            arrival_s, gpus, duration_s = row.number(arrival), row.whole(size), row.number(duration)
        yield job_id.strip(), arrival_s, gpus, duration_s


def headerless(source: Source, columns: Sequence[str], delimiter: str = ",") -> Iterator[Row]:
    """Read a table without a header, whose columns are known; a header with these names may be there."""
    index = {name: i for i, name in enumerate(columns)}
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=delimiter)
    for cells in checked(reader, source.where):
        if not cells or cells == list(columns):
            continue
        if len(cells) != len(columns):
            what = f"{len(cells)} cells; every row must have {len(columns)}: {', '.join(columns)}"
            raise InputError(what, where=source.where, line=reader.line_num)
        yield Row(source.where, reader.line_num, cells, index)
