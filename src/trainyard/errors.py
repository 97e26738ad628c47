"""Every exception of the project, in one place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TrainyardError(Exception):
    """Base of all errors that Trainyard raises on purpose."""


class InputError(TrainyardError):
    """The user's input is wrong: one line that says where, what is wrong and what would be right."""

    def __init__(self, what: str, *, where: str = "", line: int | None = None, field: str = "") -> None:
        place = ", ".join(
            p for p in (where, f"line {line}" if line else "", f"field {field}" if field else "") if p
        )
        super().__init__(" ".join(f"{place}: {what}".split()) if place else " ".join(what.split()))


class RefusedError(InputError):
    """A controller refuses what the user asks for; `code` is a stable word, `field` what is wrong."""

    def __init__(self, message: str, code: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.field = code, field


class ControllerError(TrainyardError):
    """A controller cannot do what it was asked; `code` is a stable word."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class UnreachableError(ControllerError):
    """No controller answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "unavailable")


class StageError(InputError):
    """A stage of another package raises; the exception itself is the cause of this one."""


class PlanError(TrainyardError):
    """A policy made a plan that the cluster cannot carry out: a bug in the policy."""


class TransitionError(TrainyardError):
    """An event asked for a job-state change that the transition table does not allow."""


class SolverError(TrainyardError):
    """The solver refuses a linear or integer program, or ends without a verdict."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known name, or what there is to choose from."""
    options = sorted(set(known))
    near = difflib.get_close_matches(name.lower(), [o.lower() for o in options], n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{next(o for o in options if o.lower() == near[0])}'?"
    shown = ", ".join(options[:12]) + (", ..." if len(options) > 12 else "")
    return f"; known: {shown}" if options else ""
