"""Put a changed function in the place of the one that is imported already.

Whoever imported it by name has the changed one too, for it stays the same object with another code.
"""

from __future__ import annotations

import importlib
from functools import reduce
from types import CodeType, FunctionType
from typing import Any


def put_in(file: str, function: str, source: bytes) -> bool:
    """Change a function of the package to what this source says; False if its body is not what changed."""
    module = importlib.import_module(f"trainyard.{file.removesuffix('.py').replace('/', '.')}")
    found = _plain(module, function)
    code = _code_of(compile(source, str(module.__file__), "exec"), function)
    if found is None or code is None or found.__code__ == code:
        return False
    if code.co_freevars != found.__code__.co_freevars:  # `super()` came or went
        return False
    found.__code__ = code
    return True


def _plain(module: object, function: str) -> FunctionType | None:
    """Return the function itself, without what decorators made of it."""
    found: Any = reduce(_member, function.split("."), module)
    for name in ("fget", "__func__", "__wrapped__", "func"):
        found = getattr(found, name, found)
    return found if isinstance(found, FunctionType) else None


def _member(owner: Any, name: str) -> Any:
    return vars(owner).get(name) if hasattr(owner, "__dict__") else None


def _code_of(code: CodeType, function: str) -> CodeType | None:
    """Look for the code of a function in the code of its module."""
    if code.co_qualname == function:
        return code
    inside = (_code_of(part, function) for part in code.co_consts if isinstance(part, CodeType))
    return next((part for part in inside if part is not None), None)
