"""Points of the protocol that have a name: tests hand in a function that is told of each."""

from __future__ import annotations

from collections.abc import Callable

Label = Callable[[str], None]


def nothing(_: str) -> None:
    """Stand in for that function: tests kill the controller there."""
