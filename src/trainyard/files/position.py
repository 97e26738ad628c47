"""Where in the input something stands: every complaint names the file, the line and the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trainyard.errors import InputError

Key = str | int
Path = tuple[Key, ...]
LineOf = Callable[[Path], int | None]


def no_line(_path: Path) -> int | None:
    """Stand in for the line numbers of data that came without a file."""
    return None


def dotted(path: Path) -> str:
    """Write a path as people do: nodes[0].gpus."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


class Position(NamedTuple):
    """A file, a path into it, and what finds the line of a path."""

    where: str = ""
    line_of: LineOf = no_line
    path: Path = ()

    def at(self, *keys: Key) -> Position:
        """Return the place of a part of what stands here."""
        return self._replace(path=(*self.path, *keys))

    def error(self, what: str, *keys: Key) -> InputError:
        """Make an error about what stands here, or about a part of it."""
        path = (*self.path, *keys)
        return InputError(what, where=self.where, line=self.line_of(path), field=dotted(path))


def on_line(where: str, line: int) -> Position:
    """Return the place of a row."""
    return Position(where, lambda _path: line)
