"""Letting pydantic judge data, and saying in one plain line what is wrong and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from trainyard.errors import InputError, did_you_mean
from trainyard.files.position import Position

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

T = TypeVar("T")
PROBLEMS = {
    "missing": "is missing",
    "finite_number": "is not finite",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
    "int_parsing_size": "is too large",
    "literal_error": "is not a choice",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "has characters that cannot be printed",
    "string_unicode": "has characters that cannot be printed",
    "bool_type": "is not a choice",
    "bool_parsing": "is not a choice",
    "list_type": "is not a list",
    "dict_type": "is not a mapping",
}
NEAR = 0.8
UNKNOWN_KEY = ("extra_forbidden", "invalid_key")


def check(schema: TypeAdapter[T], data: object, place: Position, *, cells: bool = False) -> T:
    """Return data as the schema makes it; numbers may be text only in the cells of a table."""
    try:
        return schema.validator.validate_python(data, strict=not cells)  # type: ignore[no-any-return]
    except ValueError as refused:  # pydantic's ValidationError
        errors = cast("ValidationError", refused).errors(include_url=False)
        # A misspelt key is also a missing one; the first says more.
        first = next((e for e in errors if e["type"] in UNKNOWN_KEY), errors[0])
        raise _explained(first, schema.json_schema(), place) from None


def _explained(error: ErrorDetails, schema: dict[str, Any], place: Position) -> InputError:
    kind, loc, value = error["type"], error["loc"], error["input"]
    if kind == "near_miss":
        return place.error(error["msg"], *loc, error["ctx"]["name"])
    if kind in UNKNOWN_KEY:
        name, known = str(loc[-1]), _node(schema, loc[:-1]).get("properties", ())
        return place.error(f"unknown key '{name}'{did_you_mean(name, known)}", *loc[:-1], name)
    if loc and loc[-1] == "[key]":
        what = f"the name {shown(value)} {_problem(kind, value)}; it must be one line of text"
        return place.error(what, *loc[:-2], str(loc[-2]))
    node = _node(schema, loc)
    subject = "" if kind == "missing" else shown(value)
    if _is_number(value) and not kind.endswith("_type"):
        subject = subject.strip("'")  # a cell of a table
    what = f"{subject} {_problem(kind, value)}; it must be {_wanted(node)}"
    return place.error(what + _near_choice(value, node.get("enum", ())), *loc)


@cache
def near_miss(name: str, absent: frozenset[str]) -> str:
    """Complain about a name that is almost a known but absent one; other names are left alone."""
    near = difflib.get_close_matches(name.lower(), sorted(absent), n=1, cutoff=NEAR)
    return f"unknown field '{name}'; did you mean '{near[0]}'?" if near else ""


def shown(value: object) -> str:
    """Show a value in a message, as its author wrote it, not too long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a number {'below -' if value < 0 else 'above '}1e30"  # Python may refuse to print its digits
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"


def _problem(kind: str, value: object) -> str:
    """Say what is wrong with a value."""
    if kind == "string_type":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "is a number, not text: put it in quotes" if number else "is not text"
    if kind in ("too_short", "too_long") and isinstance(value, list):
        return f"of {len(value)} is too {kind[4:]}"
    if not kind.startswith(("int_", "float_")) or kind in PROBLEMS:
        return PROBLEMS.get(kind, "does not fit")
    if isinstance(value, bool) or not _is_number(value):
        return "is not a number"
    if isinstance(value, str) and kind.endswith("_type"):
        return "is text, not a number: leave out the quotes"
    return "is not a whole number" if kind.startswith("int_") else "is too large to compute with"


def _is_number(value: Any) -> bool:
    try:
        return isinstance(float(value), float)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False


def _node(schema: dict[str, Any], loc: tuple[str | int, ...]) -> dict[str, Any]:
    """Return the part of a JSON schema for a path into the data."""
    node = _resolved(schema, schema)
    for key in loc:
        others: dict[str, Any] = next(
            iter(node.get("patternProperties", {}).values()), {}
        )  # of names of the user's choice
        inner = node.get("items") if isinstance(key, int) else node.get("properties", {}).get(key)
        node = _resolved(inner or others, schema)
    return node


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = node.get("$ref", "").removeprefix("#/$defs/")
    return schema["$defs"][name] if name else node


def _wanted(node: Mapping[str, Any]) -> str:
    """Say what would be right."""
    if "enum" in node:
        return " or ".join(f"'{word}'" for word in node["enum"])
    if node.get("type") == "object":
        return "written as {key: value}"
    return str(node.get("description", "written as [...]"))


def _near_choice(value: object, words: list[str]) -> str:
    hint = did_you_mean(str(value), words)
    return hint if "did you mean" in hint else ""
