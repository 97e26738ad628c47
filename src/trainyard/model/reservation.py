"""Reservations: nodes that are kept for a tenant, or for nobody, for some time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reservation:
    """From one moment to another only jobs of one tenant run on these nodes; without a tenant, nobody does.

    Either the nodes are named, or so many GPUs are asked for, of one type or any: then `settled` chooses.
    """

    name: str
    from_s: float
    to_s: float
    nodes: tuple[str, ...] = ()
    tenant: str = ""
    gpus: int = 0
    gpu_type: str = ""

    def overlaps(self, other: Reservation) -> bool:
        """Whether both want something at the same time."""
        return self.from_s < other.to_s and other.from_s < self.to_s
