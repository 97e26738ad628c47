"""CSV tables with a header, row by row, with the line each row starts on."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from trainyard.errors import InputError
from trainyard.files.checking import near_miss
from trainyard.files.position import Position, on_line

if TYPE_CHECKING:
    from _csv import Reader


def checked(reader: Reader, where: str) -> Iterator[list[str]]:
    """Return the rows of a CSV; what is none is told with its line."""
    try:
        yield from reader
    except csv.Error as error:
        what = f"not valid CSV: {error}; check the quotes"
        raise InputError(what, where=where, line=reader.line_num) from None


class CsvTable:
    """A CSV whose header is checked when it is opened and whose rows are checked as they are read."""

    def __init__(self, text: str, where: str, known: Sequence[str], required: Sequence[str]) -> None:
        self.where = where
        self._reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        self.header = [name.strip() for name in next(checked(self._reader, where), [])]
        self._check_header(known, required)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Return (line, cells) of every row that is not blank."""
        width, reader = len(self.header), self._reader
        line = reader.line_num + 1
        for row in checked(reader, self.where):
            if len(row) == width:
                yield line, row
            elif row:
                what = f"{len(row)} cells in a table of {width} columns; every row must have {width}"
                raise InputError(what, where=self.where, line=line)
            line = reader.line_num + 1

    def records(self, columns: Collection[str]) -> Iterator[tuple[dict[str, str], Position]]:
        """Return the cells of these columns that are not empty, by column, and the place, of every row."""
        picked = [(name, i) for i, name in enumerate(self.header) if name in columns]
        for line, row in self.rows():
            cells = {name: cell for name, i in picked if (cell := row[i].strip())}
            yield cells, on_line(self.where, line)

    def _check_header(self, known: Sequence[str], required: Sequence[str]) -> None:
        absent = frozenset(known).difference(self.header)
        for name in self.header:
            if name and self.header.count(name) > 1:
                raise self._header_error(f"column '{name}' is there twice; it must be there once", name)
            if name not in known and (near := near_miss(name, absent)):
                raise self._header_error(near, name)
        for name in required:
            if name not in self.header:
                raise self._header_error(f"column '{name}' is missing{self._hint(required)}", name)

    def _header_error(self, what: str, field: str) -> InputError:
        return InputError(what, where=self.where, line=1, field=field)

    def _hint(self, required: Sequence[str]) -> str:
        if len(self.header) == 1 and any(mark in self.header[0] for mark in ";\t|"):
            return "; columns must be separated by commas"
        return f"; the first line must name the columns, at least {', '.join(required)}"
