"""CSV tables with a header, row by row, with the line each row starts on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TypeVar

from trainyard.errors import InputError
from trainyard.files.values import FieldError, Kind, near_miss

T = TypeVar("T")


class CsvTable:
    """A CSV whose header is checked when it is opened and whose rows are checked as they are read."""

    def __init__(self, text: str, where: str, known: Sequence[str], required: Sequence[str]) -> None:
        self.where = where
        self._reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        self.header = [name.strip() for name in self._next() or []]
        self._check_header(known, required)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Return (line, cells) of every row that is not blank."""
        width = len(self.header)
        line = self._reader.line_num + 1
        while (row := self._next()) is not None:
            if len(row) == width:
                yield line, row
            elif row:
                what = f"{len(row)} cells in a table of {width} columns; every row must have {width}"
                raise InputError(what, where=self.where, line=line)
            line = self._reader.line_num + 1

    def need(self, name: str, kind: Kind[T], row: Sequence[str], line: int) -> T:
        """Return the value of a cell that must not be empty."""
        text = row[self.header.index(name)].strip()
        try:
            if text:
                return kind.parse(text)
            raise FieldError(f"is empty; it must be {kind.wanted}")
        except FieldError as wrong:
            raise InputError(wrong.what, where=self.where, line=line, field=name) from None

    def _next(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            what = f"not valid CSV: {error}; check the quotes"
            raise InputError(what, where=self.where, line=self._reader.line_num) from None

    def _check_header(self, known: Sequence[str], required: Sequence[str]) -> None:
        for name in self.header:
            if name and self.header.count(name) > 1:
                raise self._header_error(f"column '{name}' is there twice; it must be there once", name)
            if near := near_miss(name, self.header, known):
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
