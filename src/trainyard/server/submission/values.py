"""Single values of a submission: what each means, or one line that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trainyard.files.checking import shown
from trainyard.model.limits import SMALLEST
from trainyard.server.faults import FieldError

Reader = Callable[[str, Any], Any]  # of a field's name and its value
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
LONGEST = 200  # of a line of text


def whole(least: int, most: int) -> Reader:
    """Whole numbers within bounds; 8.0 is one."""

    def read(field: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise FieldError(
                field, f"{shown(value)} does not fit; give a whole number from {least} to {most}"
            )
        return value

    return read


def number(most: float, *, or_zero: bool = False) -> Reader:
    """Numbers above 0, or from 0 on, within what can be computed with."""
    least, right = (0.0, "of at least 0") if or_zero else (SMALLEST, "above 0")

    def read(field: str, value: Any) -> float:
        counts = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not counts or not least <= value <= most:
            raise FieldError(field, f"{shown(value)} does not fit; give a number {right}, at most {most:g}")
        return float(value)

    return read


def flag(field: str, value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise FieldError(field, f"{shown(value)} does not fit; give true or false")
    return value


def text(field: str, value: Any) -> str:
    """Read any text that a file can hold; no process can be given a NUL."""
    if not isinstance(value, str):
        raise FieldError(field, f"{shown(value)} is not text; give text")
    if "\0" in value or not _encodes(value):
        raise FieldError(field, "there is a character that no program can be given; leave it out")
    return value


def line(field: str, value: Any) -> str:
    """Read one short line of text that can be printed."""
    read = text(field, value).strip()
    if not read or len(read) > LONGEST or not read.isprintable():
        raise FieldError(field, f"{shown(value)} does not fit; give one line of 1 to {LONGEST} characters")
    return read


def name(field: str, value: Any) -> str:
    """Read the name of a job, which commands have to tell from an id."""
    read = text(field, value)
    if NAME.fullmatch(read) is None or read.isdigit():
        right = "1 to 63 letters, digits, dots, - and _, beginning with a letter or digit and not all digits"
        raise FieldError(field, f"{shown(value)} is no name of a job; give {right}")
    return read


def list_of(read_one: Reader, most: int, least: int = 0) -> Reader:
    """Lists of values."""

    def read(field: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise FieldError(field, f"{shown(value)} is not a list; give a list")
        if not least <= len(value) <= most:
            raise FieldError(field, f"a list of {len(value)} does not fit; give {least} to {most}")
        return tuple(read_one(f"{field}[{i}]", one) for i, one in enumerate(value))

    return read


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
