"""Shapes: how big a job is, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """How big a job is: workers per GPU type, plus parameter servers."""

    workers: tuple[tuple[str, int], ...]
    servers: int = 0

    @property
    def gpus(self) -> int:
        """All workers; each holds one GPU."""
        return sum(count for _, count in self.workers)
