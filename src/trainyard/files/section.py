"""A mapping of an input file, read key by key; every complaint names the file, the line and the field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from trainyard.errors import InputError, did_you_mean
from trainyard.files.values import FieldError, Kind, shown

Key = str | int
Path = tuple[Key, ...]
LineOf = Callable[[Path], int | None]
T = TypeVar("T")
D = TypeVar("D")


def no_line(_path: Path) -> int | None:
    """Stand in for the line numbers of data that came without a file."""
    return None


def dotted(path: Path) -> str:
    """Write a path as people do: nodes[0].gpus."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


class Section:
    """One mapping of a file."""

    __slots__ = ("data", "line_of", "path", "where")

    def __init__(self, data: object, where: str, line_of: LineOf = no_line, path: Path = ()) -> None:
        self.where, self.line_of, self.path = where, line_of, path
        if not isinstance(data, dict):
            raise self.error(f"{shown(data)} is not a mapping; it must be written as key: value")
        self.data: dict[object, object] = data

    def error(self, what: str, *keys: Key) -> InputError:
        """Make an error about this section, or about a part of it."""
        path = (*self.path, *keys)
        return InputError(what, where=self.where, line=self.line_of(path), field=dotted(path))

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody reads."""
        known = list(known)
        for key in self.data:
            if key not in known:
                name = key if isinstance(key, str) else shown(key)
                raise self.error(f"unknown key '{name}'{did_you_mean(name, known)}", name)

    def key_text(self, key: object) -> str:
        """Return a key that is a name of the user's choice."""
        if isinstance(key, str) and key.strip():
            return key
        raise self.error(f"the name {key} is not text: put it in quotes", str(key))

    def need(self, key: str, kind: Kind[T]) -> T:
        """Return a value that must be there."""
        if self.data.get(key) is None:
            raise self.error(f"'{key}' is missing; it must be {kind.wanted}", key)
        return self._accept(key, kind)

    def get(self, key: str, kind: Kind[T], default: D) -> T | D:
        """Return a value, or the default when it is not there."""
        return default if self.data.get(key) is None else self._accept(key, kind)

    def _accept(self, key: str, kind: Kind[T]) -> T:
        try:
            return kind.accept(self.data[key])
        except FieldError as wrong:
            raise self.error(wrong.what, key) from None

    def section(self, key: str) -> Section:
        """Return the mapping under a key."""
        return Section(self.data.get(key), self.where, self.line_of, (*self.path, key))

    def sections(self, key: str) -> Iterator[Section]:
        """Return the mappings of the list under a key."""
        for i, item in enumerate(self.items(key)):
            yield Section(item, self.where, self.line_of, (*self.path, key, i))

    def items(self, key: str) -> list[object]:
        """Return the list under a key."""
        value = self.data.get(key)
        if not isinstance(value, list):
            raise self.error(f"{shown(value)} is not a list; '{key}' must be a list", key)
        return value
