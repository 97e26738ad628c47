"""Which jobs changed, one entry after the other: what is kept sorted or summed catches up from it."""

from __future__ import annotations

from trainyard.state.record import Record

KEPT = 8192  # entries that readers may be behind; who is further behind starts anew


class Journal:
    """A log of changed records. A reader remembers the version up to which it has read."""

    __slots__ = ("base", "entries")

    def __init__(self) -> None:
        self.base = 0  # entries that are no longer here
        self.entries: list[Record] = []

    @property
    def version(self) -> int:
        """How many changes there were so far."""
        return self.base + len(self.entries)

    def since(self, version: int) -> list[Record] | None:
        """Return who changed after that version, in order, perhaps repeatedly; None if it is forgotten."""
        return self.entries[version - self.base :] if version >= self.base else None

    def trim(self) -> None:
        """Forget the older half when it has become long."""
        if len(self.entries) > KEPT:
            self.base += len(self.entries) - KEPT // 2
            del self.entries[: -(KEPT // 2)]
