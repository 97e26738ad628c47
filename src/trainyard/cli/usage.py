"""Wrong use of the command line, in plain words: what is wrong, and what would be right."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer

from trainyard.errors import InputError, did_you_mean

LARGEST = 2**63 - 1


def number(text: str) -> float:
    """Read the value of an option that is a number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a number; give one such as 60 or 0.5") from None


def whole(text: str) -> int:
    """Read the value of an option that is a whole number."""
    try:
        value = int(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a whole number; give one such as 42") from None
    if abs(value) > LARGEST:
        raise typer.BadParameter(f"'{text}' is too large; give at most {LARGEST}")
    return value


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Read the value of an option that is a duration; a bare number means minutes here, seconds there."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip(), re.ASCII)
    if found is None:
        raise typer.BadParameter(f"'{text}' is no duration; give one such as 90s, 30m, 12h or 2d")
    amount, unit = found.groups()
    if not unit:
        raise typer.BadParameter(f"{text} has no unit; write {amount}m (minutes, as in Slurm) or {amount}s")
    return float(amount) * UNITS[unit]


def positive(option: str, value: float | None) -> None:
    """Refuse a value that is not above 0 or not finite."""
    if value is not None and not 0 < value < math.inf:
        raise InputError(f"{option} {value:g}: give a {_finite(value)}number above 0")


def not_negative(option: str, value: float | None) -> None:
    """Refuse a value that is below 0 or not finite."""
    if value is not None and not 0 <= value < math.inf:
        right = "0 or more" if math.isfinite(value) else "a finite number, 0 or more"
        raise InputError(f"{option} {value:g}: give {right}")


def in_bounds(option: str, value: float | None, least: float, most: float) -> None:
    """Refuse a value that is out of bounds."""
    if value is not None and not least <= value <= most:
        raise InputError(f"{option} {value:g}: give a number from {least:g} to {most:g}")


def wants_suffix(name: str, path: str, suffixes: tuple[str, ...], right: str) -> None:
    """Refuse a file to write whose name does not end in one of these; pipes and devices may have any name."""
    if not path.lower().endswith(suffixes) and not _is_device(path):
        raise InputError(f"{name} '{path}': give a name that ends in {right}")


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _finite(value: float) -> str:
    """Tell those who gave no finite number that it must be one."""
    return "" if math.isfinite(value) else "finite "


def note(text: str) -> None:
    """Tell on stderr what is worth knowing of the input and is no error."""
    print(f"note: {text}", file=sys.stderr)


def explain(error: Any) -> str:
    """Say in one line what is wrong with a command line."""
    # Click's exceptions are told by name and text: typer has its own copy of them or not, by version.
    kind = type(error).__name__
    if kind == "MissingParameter" and error.param is not None:
        return _missing(error)
    if kind == "BadParameter" and error.param is not None:
        return f"{_name(error.param)}: {error.message}"
    if kind == "NoSuchOption" and error.ctx is not None:
        name = error.option_name
        return f"unknown option '{name}'{did_you_mean(name, _options(error.ctx))}"
    for pattern, say in _TEXTS:
        found = re.match(pattern, error.format_message())
        if found is not None:
            return say(error, *found.groups())
    return str(error.format_message())


def _missing(error: Any) -> str:
    name, metavar = _name(error.param), error.param.metavar or ""
    wanted = f"{name} {metavar}".strip() if name.startswith("-") else name
    return f"{name} is missing; give {wanted}{_help(error)}"


def _name(param: Any) -> str:
    """Name a parameter as its user does: --jobs, or SRC for an argument."""
    own = str(param.opts[-1])
    return own if own.startswith("-") else str(param.metavar or own.upper())


def _options(context: Any) -> Iterable[str]:
    return ["--help", *(opt for p in context.command.params for opt in p.opts if opt.startswith("-"))]


def _commands(error: Any) -> list[str]:
    return list(error.ctx.command.commands) if error.ctx is not None else []


def _help(error: Any) -> str:
    return f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""


_TEXTS: tuple[tuple[str, Callable[..., str]], ...] = (
    (
        r"No such command '(.*?)'",
        lambda error, name: f"unknown command '{name}'{did_you_mean(name, _commands(error))}",
    ),
    (
        r"Missing command",
        lambda error: f"a command is missing; give one of {', '.join(_commands(error))}",
    ),
    (
        r"Option '(.*?)' requires",
        lambda error, name: f"{name}: its value is missing; give it after {name}",
    ),
    (
        r"Option '(.*?)' does not take a value",
        lambda error, name: f"{name} takes no value; give {name} alone",
    ),
    (
        r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)",
        lambda error, extra: f"unexpected '{extra}'; leave it out{_help(error)}",
    ),
)
