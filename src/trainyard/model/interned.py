"""Interning: of all values that are equal there is one object, so `is` compares and hashing costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, TypeVarTuple, cast
from weakref import WeakValueDictionary

T = TypeVar("T")
Value = TypeVarTuple("Value")
_known: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()  # forgets what is no longer used
_lock = Lock()  # two threads that ask at the same time get the same object


def interned(make: Callable[[*Value], T], *value: *Value) -> T:
    """Return the one object that `make` makes of these values, which must be hashable."""
    key = (make, *value)
    with _lock:
        found = cast("T | None", _known.get(key))
        if found is None:
            found = _known[key] = make(*value)
    return found
