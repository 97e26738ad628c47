"""What single values of an input file may be: numbers, whole numbers, text, choices.

Each kind reads a cell of a CSV (`parse`) or a value of JSON or YAML (`accept`) and refuses what does not fit
with a `FieldError` that says what is wrong and what would be right; the caller adds file, line and field.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf
from sys import intern
from typing import Protocol, TypeVar

from trainyard.errors import did_you_mean

MAX_GPUS = 1_000_000
NEAR = 0.8
T_co = TypeVar("T_co", covariant=True)


class FieldError(Exception):
    """A value that does not fit; a caller in this package makes it an `InputError` with its place."""

    def __init__(self, what: str, field: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.field = field


class Kind(Protocol[T_co]):
    """A kind of value."""

    @property
    def wanted(self) -> str:
        """What would be right, as a noun phrase."""

    def parse(self, text: str) -> T_co:
        """Read a non-empty cell of a CSV."""

    def accept(self, value: object) -> T_co:
        """Read a value of JSON or YAML."""


def shown(value: object) -> str:
    """Show a value in a message, as its author wrote it, not too long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return _shortened(repr(value) if isinstance(value, str) else str(value))


def near_miss(name: str, given: Collection[str], known: Collection[str]) -> str:
    """Complain about a name that is almost a known one that is not given; other names are somebody else's."""
    absent = sorted(k for k in known if k not in given)
    near = difflib.get_close_matches(name.lower(), absent, n=1, cutoff=NEAR)
    return f"unknown field '{name}'; did you mean '{near[0]}'?" if near and name not in known else ""


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"


def _refusal(kind: Kind[object], value: str, problem: str) -> FieldError:
    return FieldError(f"{value} {problem}; it must be {kind.wanted}")


def _no_number(value: object) -> str:
    try:
        float(value if isinstance(value, str) else "")
    except ValueError:
        return "is not a number"
    return "is text, not a number: leave out the quotes"


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, at least `least`, or above it."""

    least: float = 0.0
    above: bool = False

    @property
    def wanted(self) -> str:
        """What would be right."""
        return f"a number {'above' if self.above else 'of at least'} {self.least:g}"

    def parse(self, text: str) -> float:
        """Read a cell."""
        try:
            value = float(text)
        except ValueError:
            raise _refusal(self, shown(text), "is not a number") from None
        if "_" in text:
            raise _refusal(self, shown(text), "is not a number")
        return self._fit(value, text)

    def accept(self, value: object) -> float:
        """Read a value."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refusal(self, shown(value), _no_number(value))
        try:
            return self._fit(float(value), value)
        except OverflowError:
            raise _refusal(self, _digits(int(value)), "is too large to compute with") from None

    def _fit(self, value: float, written: object) -> float:
        if self.least <= value < inf and not (self.above and value == self.least):
            return value
        if value != value or value in (inf, -inf):
            raise _refusal(self, _shortened(str(written)), "is not finite")
        raise _refusal(self, _shortened(str(written)), "is too small")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int = 1
    most: int = MAX_GPUS

    @property
    def wanted(self) -> str:
        """What would be right."""
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, text: str) -> int:
        """Read a cell; 8.0 is 8, because spreadsheets write it so."""
        try:
            value = int(text)
        except ValueError:
            value = self._whole(text)
        if "_" in text:
            raise _refusal(self, shown(text), "is not a number")
        return self._fit(value)

    def accept(self, value: object) -> int:
        """Read a value."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refusal(self, shown(value), _no_number(value))
        return self._fit(value if isinstance(value, int) else self._whole(value))

    def _whole(self, written: str | float) -> int:
        try:
            value = float(written)
        except ValueError:
            raise _refusal(self, shown(written), "is not a number") from None
        if not value.is_integer():
            raise _refusal(self, _shortened(str(written)), "is not a whole number")
        return int(value)

    def _fit(self, value: int) -> int:
        if self.least <= value <= self.most:
            return value
        raise _refusal(self, _digits(value), "is too small" if value < self.least else "is too large")


def _digits(value: int) -> str:
    """Show a whole number; Python refuses to print thousands of digits."""
    return str(value) if abs(value) < 10**30 else f"a number {'below -' if value < 0 else 'above '}1e30"


@dataclass(frozen=True, slots=True)
class Text:
    """One line of printable text; surrounding blanks do not count."""

    example: str = ""

    @property
    def wanted(self) -> str:
        """What would be right."""
        return "one line of text" + (f" such as {self.example!r}" if self.example else "")

    def parse(self, text: str) -> str:
        """Read a cell."""
        if text.isprintable():
            return intern(text)  # thousands of jobs share a few tenants and models
        raise _refusal(self, shown(text), "has characters that cannot be printed")

    def accept(self, value: object) -> str:
        """Read a value."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise _refusal(self, shown(value), "is a number, not text: put it in quotes")
        if not isinstance(value, str):
            raise _refusal(self, shown(value), "is not text")
        if not value.strip():
            raise _refusal(self, shown(value), "is empty")
        return self.parse(value.strip())


@dataclass(frozen=True, slots=True)
class Name(Text):
    """Text that may also be written as a whole number, such as a job id."""

    def accept(self, value: object) -> str:
        """Read a value."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        return str(value) if whole else Text.accept(self, value)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    words: Sequence[str]

    @property
    def wanted(self) -> str:
        """What would be right."""
        return " or ".join(f"'{word}'" for word in self.words)

    def parse(self, text: str) -> str:
        """Read a cell."""
        if text in self.words:
            return text
        near = did_you_mean(text, self.words)
        hint = near if "did you mean" in near else ""
        raise FieldError(f"{shown(text)} is not a choice; it must be {self.wanted}{hint}")

    def accept(self, value: object) -> str:
        """Read a value."""
        if not isinstance(value, str):
            raise _refusal(self, shown(value), "is not a choice")
        return self.parse(value)
