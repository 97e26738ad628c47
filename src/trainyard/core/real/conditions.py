"""What is the matter with nodes: failed, gone, drained, reserved, or with broken GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainyard.model.reservation import Reservation


@dataclass(slots=True)
class Conditions:
    """What is the matter with nodes, by name."""

    down: set[str] = field(default_factory=set)  # failed
    away: set[str] = field(default_factory=set)  # left
    drained: set[str] = field(default_factory=set)
    broken: dict[str, set[int]] = field(default_factory=dict)  # GPUs that failed, by index
    reservations: dict[str, Reservation] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)  # nodes on which nobody may start now, for any reason

    def copy(self) -> Conditions:
        """Return an independent copy."""
        return Conditions(
            self.down.copy(),
            self.away.copy(),
            self.drained.copy(),
            {node: indices.copy() for node, indices in self.broken.items()},
            self.reservations.copy(),
            self.closed.copy(),
        )
