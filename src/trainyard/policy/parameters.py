"""Parameters of a stage: the annotated arguments of its `__init__`."""

from __future__ import annotations

import inspect
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

PLAIN = (float, int, bool, str)


def parameters_of(make: type[Any]) -> dict[str, Any]:
    """Return the parameters of a stage and their types."""
    if make.__init__ is object.__init__:
        return {}
    hints = get_type_hints(make.__init__)
    return {name: hints[name] for name in inspect.signature(make.__init__).parameters if name != "self"}


def bare(kind: Any) -> Any:
    """Return a type without its `| None`."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    parts = [part for part in get_args(kind) if part is not NoneType]
    return parts[0] if len(parts) == 1 else kind


def readable(kind: Any) -> bool:
    """Whether the policy grammar can read a value of this type."""
    inner = bare(kind)
    if get_origin(inner) is Literal:
        return all(isinstance(choice, str) for choice in get_args(inner))
    text = getattr(inner, "__supertype__", None) is str
    return text or inner in PLAIN or inner == tuple[float, ...]
